package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/plan"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// insert answers insert (https://www.mongodb.com/docs/manual/reference/command/insert/).
func (d *Data) insert(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	in, err := statement.ParseInsert(&backend.Request{Body: req.Body, Sequences: req.Sequences})
	if err != nil {
		return err
	}
	var p *plan.Insert
	err = d.ready(ctx, a.source, func(src plan.Source) ([]route.Place, error) {
		p = plan.NewInsert(in, src, d.Exec.Abilities, d.fill(), d.Now().UnixMilli())
		return p.Missing, nil
	})
	if err != nil {
		return err
	}
	req.Plan = p
	result, err := d.Exec.Insert(ctx, p, writeOptions(&in.Generic, req))
	if err != nil {
		return err
	}
	reply.Elements = result.AppendFields(reply.Elements, false)
	return nil
}
