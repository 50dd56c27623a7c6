package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// update answers update (https://www.mongodb.com/docs/manual/reference/command/update/).
func (d *Data) update(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	u, err := statement.ParseUpdate(&backend.Request{Body: req.Body, Sequences: req.Sequences})
	if err != nil {
		return err
	}
	for i := range u.Updates {
		if err := query.CheckUpdateStages(u.Updates[i].Update); err != nil {
			return err
		}
	}
	env, err := d.envWith(u.Let)
	if err != nil {
		return err
	}
	var p *plan.Write
	err = d.ready(ctx, a.source, func(src plan.Source) ([]route.Place, error) {
		p = plan.NewUpdate(u, src, d.Exec.Abilities, newObjectID, env)
		return p.Missing, nil
	})
	if err != nil {
		return err
	}
	req.Plan = p
	result, err := d.Exec.Write(ctx, p, writeOptions(&u.Generic, req))
	if err != nil {
		return err
	}
	reply.Elements = result.AppendFields(reply.Elements, true)
	return nil
}
