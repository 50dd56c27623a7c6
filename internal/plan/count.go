package plan

import (
	"oxbow/internal/query"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Count is the plan of a count: each target counts, the sum is cut by Skip and Limit.
type Count struct {
	Routed  Routed
	Command Command
	Skip    int64
	Limit   int64 // 0: none
}

// NewCount plans a count.
func NewCount(c *statement.Count, src Source, env query.Env) (*Count, error) {
	filter, err := query.ParseFilter(c.Query, env)
	if err != nil {
		return nil, err
	}
	_, routed := src.route(filter)
	dst := appendDocument(nil, "query", c.Query)
	dst = appendValue(dst, "hint", c.Hint)
	if c.Limit > 0 {
		dst = bsoncore.AppendInt64Element(dst, "limit", c.Skip+c.Limit)
	}
	dst = appendReading(dst, &c.Generic)
	return &Count{Routed: routed, Command: Command{Name: "count", Rest: dst}, Skip: c.Skip, Limit: c.Limit}, nil
}

// Of returns the result for the sum of all targets.
func (c *Count) Of(sum int64) int64 {
	sum = max(0, sum-c.Skip)
	if c.Limit > 0 {
		sum = min(sum, c.Limit)
	}
	return sum
}

// Distinct is the plan of a distinct: each target gives its values, the union is the result.
type Distinct struct {
	Routed  Routed
	Command Command
}

// NewDistinct plans a distinct.
func NewDistinct(d *statement.Distinct, src Source, env query.Env) (*Distinct, error) {
	filter, err := query.ParseFilter(d.Query, env)
	if err != nil {
		return nil, err
	}
	_, routed := src.route(filter)
	dst := bsoncore.AppendStringElement(nil, "key", d.Key)
	dst = appendDocument(dst, "query", d.Query)
	dst = appendValue(dst, "hint", d.Hint)
	dst = appendReading(dst, &d.Generic)
	return &Distinct{Routed: routed, Command: Command{Name: "distinct", Rest: dst}}, nil
}

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
