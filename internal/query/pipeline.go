package query

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// Documents is a stream of documents.
type Documents interface {
	// Next returns the next document, good until the next call, or nil at the end.
	Next(ctx context.Context) (bson.Document, error)
	Close() error
}

// PipelineOptions are what the caller provides to a pipeline.
type PipelineOptions struct {
	Env      Env
	MaxBytes int64 // memory of one blocking stage ($sort, $group); 0: MongoDB's 100 MiB
	// Memory is the budget of all blocking stages and joins; nil: it has no limit.
	Memory *memory.Budget
	// Lookup returns the documents of another collection of the database that find asks for; nil refuses $lookup.
	Lookup func(ctx context.Context, collection string, find Head) (Documents, error)

	depth int // of pipelines within pipelines
}

// Pipeline is a compiled aggregation pipeline. It keeps the bytes it was compiled from: they must not change. It can be run any number of
// times, also at once.
type Pipeline struct {
	stages []stage
}

// stage is one compiled stage.
type stage interface {
	name() string
	// run starts the stage over in; closing the result closes in.
	run(in Documents) Documents
	// needs adds the fields of its input that the stage reads, and reports whether the stages behind it see nothing else of the input.
	needs(n *needs) (ends bool)
}

// Limits of MongoDB (https://www.mongodb.com/docs/manual/core/aggregation-pipeline-limits/ and
// https://www.mongodb.com/docs/manual/reference/limits/).
const (
	maxStages     = 1000
	maxNested     = 20
	maxStageBytes = 100 << 20
)

// ParsePipeline compiles a pipeline, an array of stages. Unknown stages are error 40324, stages that are not built are refused by name.
func ParsePipeline(stages bson.Array, opts PipelineOptions) (*Pipeline, error) {
	if opts.depth > maxNested {
		return nil, mongoerr.New(mongoerr.MaxSubPipelineDepthExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is %d", maxNested)
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = maxStageBytes
	}
	p := &Pipeline{}
	it := bson.Elements(stages)
	for it.Next() {
		v := it.Value()
		if v.Type != bson.TypeDocument {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		if countElements(v.Data) != 1 {
			return nil, mongoerr.New(mongoerr.PipelineStageFields, "A pipeline stage specification object must contain exactly one field.")
		}
		name, arg, _ := bson.First(v.Data)
		parsed, err := parseStage(name, arg, &opts)
		if err != nil {
			return nil, err
		}
		if p.stages = append(p.stages, parsed...); len(p.stages) > maxStages {
			return nil, mongoerr.New(5054701, "Pipeline length must be no longer than %d stages", maxStages)
		}
	}
	if it.Err() != nil {
		return nil, mongoerr.New(mongoerr.InvalidBSON, "the pipeline is malformed")
	}
	boundSorts(p.stages)
	return p, nil
}

// Collections returns the other collections that the pipeline reads ($lookup), for routing and authorisation.
func (p *Pipeline) Collections() []string {
	var names []string
	for _, s := range p.stages {
		if l, ok := s.(*lookupStage); ok {
			names = append(names, l.from)
			if l.sub != nil {
				names = append(names, l.sub.Collections()...)
			}
		}
	}
	return names
}

// Stages returns the names of the stages, for explain.
func (p *Pipeline) Stages() []string {
	names := make([]string, len(p.stages))
	for i, s := range p.stages {
		names[i] = s.name()
	}
	return names
}

// Run returns the pipeline's results over in. Closing the result closes in. A result larger than a document can be on the wire is
// BSONObjectTooLarge (10334), one that is nested too deeply Overflow (15).
func (p *Pipeline) Run(in Documents) Documents {
	nests := false
	for _, s := range p.stages {
		in = s.run(in)
		nests = nests || nesting(s)
	}
	return &results{in, nests}
}

// nesting reports whether a stage can make documents that are nested deeper than those of its input.
func nesting(s stage) bool {
	switch s := s.(type) {
	case *projectStage:
		return s.projection.mode != exclusion && s.projection.root.nests()
	case *replaceRootStage:
		return s.root.nests
	case *groupStage, *lookupStage, *unwindStage: // paths of several parts, arrays of documents
		return true
	}
	return false
}

// nests reports whether a projection can put values deeper than they were.
func (n *projectionNode) nests() bool {
	if n.kind == compute && n.expression.nests {
		return true
	}
	for _, c := range n.children {
		if c.nests() || c.kind == branch && c.computed {
			return true
		}
	}
	return false
}

// maxResultDepth is how deep a result can be nested: a reply puts it into documents of its own.
const maxResultDepth = 2*bson.MaxDepth - 20

// results refuses documents that can't be sent.
type results struct {
	Documents
	nests bool
}

func (r *results) Next(ctx context.Context) (bson.Document, error) {
	doc, err := r.Documents.Next(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(doc) > bson.MaxInternalSize:
		return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", len(doc), len(doc), bson.MaxInternalSize)
	case doc != nil && r.nests && bson.Validate(doc, maxResultDepth) != nil:
		return nil, mongoerr.New(mongoerr.Overflow, "cannot convert document to BSON because it exceeds the limit of %d levels of nesting", maxResultDepth)
	}
	return doc, nil
}
