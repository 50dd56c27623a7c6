package query

import (
	"context"

	"oxbow/internal/bson"
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
	MaxBytes int64 // memory of one blocking stage ($sort, $group, $lookup's side); MongoDB's is 100 MiB
	// Lookup returns the documents of another collection of the database that match filter; nil refuses $lookup.
	Lookup func(ctx context.Context, collection string, filter bson.Document) (Documents, error)
}

// Pipeline is a compiled aggregation pipeline.
type Pipeline struct{}

// ParsePipeline compiles a pipeline, an array of stages. Unknown stages are error 40324, stages that are not built are refused by name.
func ParsePipeline(stages bson.Array, opts PipelineOptions) (*Pipeline, error) { panic("unbuilt") }

// Head splits off what a collection can do itself: the filter of the leading $match stages (nil if none), then a $sort, $skip and $limit
// directly behind, as find's arguments. rest is what is left to run on that stream. A bare count ($count, or $group of a constant with
// $sum of a constant) is in rest like any other stage.
func (p *Pipeline) Head() (head Head, rest *Pipeline) { panic("unbuilt") }

// Head is the part of a pipeline that is a find.
type Head struct {
	Filter bson.Document // nil: all
	Sort   bson.Document // nil: none
	Skip   int64
	Limit  int64 // 0: none
}

// Collections returns the other collections that the pipeline reads ($lookup), for routing and authorisation.
func (p *Pipeline) Collections() []string { panic("unbuilt") }

// Run returns the pipeline's results over in. Closing the result closes in.
func (p *Pipeline) Run(in Documents) Documents { panic("unbuilt") }

// Stages returns the names of the stages, for explain.
func (p *Pipeline) Stages() []string { panic("unbuilt") }
