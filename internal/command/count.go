package command

import (
	"context"

	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

// count answers count. The result is exact on any layout: partitions are disjoint and nothing migrates.
func (d *Data) count(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardRead(ctx, a.source.Backend, req, reply)
	}
	c, err := statement.ParseCount(req.Body)
	if err != nil {
		return err
	}
	prefer(&c.Generic, req)
	p, err := plan.NewCount(c, a.source, d.env())
	if err != nil {
		return err
	}
	req.Plan = &p.Routed
	n, err := d.Exec.Count(ctx, p)
	if err != nil {
		return err
	}
	reply.Elements = appendCount(reply.Elements, "n", n)
	return nil
}
