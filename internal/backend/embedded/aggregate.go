package embedded

import (
	"bytes"
	"context"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// maxStageBytes is MongoDB's limit for the memory of one stage
// (https://www.mongodb.com/docs/manual/core/aggregation-pipeline-limits/).
const maxStageBytes = 100 << 20

func (b *Backend) aggregate(op operation, req *backend.Request) (bson.Document, error) {
	a, err := statement.ParseAggregate(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&a.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	a.Pipeline, a.Let, a.Hint.Data = bytes.Clone(a.Pipeline), bytes.Clone(a.Let), bytes.Clone(a.Hint.Data) // the cursor outlives the request
	p, err := b.compileAggregate(a)
	if err != nil {
		return nil, err
	}
	table, exists := b.db.Table(p.name)
	if a.Explain {
		return b.explainAggregate(op, table, exists, p, explaining{command: req.Body, verbosity: "queryPlanner"})
	}
	c := &cursor{
		namespace: namespace(p.name),
		limit:     -1,
		budget:    time.Duration(a.MaxTimeMS) * time.Millisecond,
	}
	if exists {
		defer b.usage.note(p.name, usageCommand, time.Now())
	}
	if c.in, err = p.open(op, table, exists); err != nil {
		return nil, err
	}
	return b.firstBatch(op, c, a.BatchSize, false, req.Memory)
}

// aggregation is a compiled aggregate command: what the engine does by itself, and the stages behind it.
type aggregation struct {
	name  engine.Name
	query engine.Query
	rest  *query.Pipeline
	count *bareCount // the whole rest, where it only counts
}

func (b *Backend) compileAggregate(a *statement.Aggregate) (*aggregation, error) {
	env, err := environment(a.Let)
	if err != nil {
		return nil, err
	}
	pipeline, err := query.ParsePipeline(a.Pipeline, query.PipelineOptions{
		Env:      env,
		MaxBytes: maxStageBytes,
		Memory:   b.cursors.memory,
		Lookup:   b.lookup(a.Database),
	})
	if err != nil {
		return nil, err
	}
	if a.Collection == "" {
		first := ""
		if stages := pipeline.Stages(); len(stages) > 0 {
			first = stages[0]
		}
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", first)
	}
	head, rest := pipeline.Head()
	p := &aggregation{name: engine.Name{Database: a.Database, Collection: a.Collection}, rest: rest}
	p.query, err = compileQuery(queryParts{filter: head.Filter, sort: head.Sort, hint: a.Hint}, env)
	if err != nil {
		return nil, err
	}
	p.query.Skip, p.query.Limit = head.Skip, head.Limit
	if len(rest.Stages()) == 1 {
		p.count = parseBareCount(a.Pipeline)
	}
	return p, nil
}

// open starts the aggregation. A collection that does not exist is empty, and its stages run all the same.
func (p *aggregation) open(op operation, table *engine.Table, exists bool) (query.Documents, error) {
	if p.count != nil {
		return p.countOnly(op, table, exists)
	}
	var in query.Documents = noDocuments{}
	if exists {
		found, err := table.Find(op, p.query)
		if err != nil {
			return nil, err
		}
		in = found
	}
	if len(p.rest.Stages()) == 0 {
		return in, nil
	}
	return p.rest.Run(in), nil
}

func (p *aggregation) countOnly(op operation, table *engine.Table, exists bool) (query.Documents, error) {
	if !exists {
		return noDocuments{}, nil
	}
	q := p.query
	q.Sort, q.Natural = nil, 0
	n, err := table.Count(op, q)
	if err != nil || n == 0 {
		return noDocuments{}, err
	}
	return &listed{rest: []bson.Document{p.count.document(n)}}, nil
}

// lookup serves $lookup from the engine, which uses indexes for it.
func (b *Backend) lookup(database string) func(context.Context, string, query.Head) (query.Documents, error) {
	return func(ctx context.Context, collection string, find query.Head) (query.Documents, error) {
		table, exists := b.db.Table(engine.Name{Database: database, Collection: collection})
		if !exists {
			return noDocuments{}, nil
		}
		env, err := environment(find.Let)
		if err != nil {
			return nil, err
		}
		q, err := compileQuery(queryParts{filter: find.Filter, sort: find.Sort}, env)
		if err != nil {
			return nil, err
		}
		q.Skip, q.Limit = find.Skip, find.Limit
		found, err := table.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		return found, nil
	}
}
