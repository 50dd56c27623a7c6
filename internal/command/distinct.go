package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

// distinct answers distinct.
func (d *Data) distinct(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardRead(ctx, a.source.Backend, req, reply)
	}
	s, err := statement.ParseDistinct(outside(req))
	if err != nil {
		return err
	}
	prefer(&s.Generic, req)
	p, err := plan.NewDistinct(s, a.source, d.env())
	if err != nil {
		return err
	}
	req.Plan = &p.Routed
	values, err := d.Exec.Distinct(ctx, p)
	if err != nil {
		return err
	}
	reply.Elements = bsoncore.AppendArrayElement(reply.Elements, "values", values)
	return nil
}
