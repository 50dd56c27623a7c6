package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// Aggregate is the plan of an aggregation at the gateway: Find reads what its leading stages ask for, Rest runs on that stream.
type Aggregate struct {
	Find   *Find
	Rest   *query.Pipeline
	Whole  *Command // with one target and no other collection: the target runs the pipeline itself
	Target Target
}

// NewAggregate plans an aggregation. pipeline is the parsed one of a.
func NewAggregate(a *statement.Aggregate, src Source, pipeline *query.Pipeline, env query.Env) (*Aggregate, error) {
	head, rest := pipeline.Head()
	find := &statement.Find{
		Generic: a.Generic, Collection: a.Collection, BatchSize: -1, Hint: a.Hint, Let: a.Let,
		Filter: head.Filter, Sort: head.Sort, Skip: head.Skip, Limit: head.Limit,
	}
	p, err := NewFind(find, src, env)
	if err != nil {
		return nil, err
	}
	out := &Aggregate{Find: p, Rest: rest}
	if len(p.Routed.Targets) == 1 && len(pipeline.Collections()) == 0 {
		out.Whole, out.Target = aggregateCommand(a), p.Routed.Targets[0]
	}
	return out, nil
}

// aggregateCommand is the client's command for a target, cursor options left out.
func aggregateCommand(a *statement.Aggregate) *Command {
	dst := bsoncore.AppendArrayElement(nil, "pipeline", a.Pipeline)
	dst = appendValue(dst, "hint", a.Hint)
	dst = appendDocument(dst, "let", a.Let)
	dst = appendReading(dst, &a.Generic)
	return &Command{Name: "aggregate", Rest: dst}
}
