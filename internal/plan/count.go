package plan

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/query"
	"oxbow/internal/statement"
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
	if c.Limit > 0 && c.Skip <= math.MaxInt64-c.Limit {
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
