package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/query"
	"oxbow/internal/statement"
)

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
