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
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	u, err := statement.ParseUpdate(&backend.Request{Body: outside(req), Sequences: req.Sequences})
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
	options := writeOptions(&u.Generic, req)
	result, err := d.replanned(a.source, len(u.Updates), u.Ordered && !a.source.ByPartition, func(src plan.Source, only []int32) (*backend.WriteReply, error) {
		some := *u
		some.Updates = pick(u.Updates, only)
		var p *plan.Write
		err := d.ready(ctx, src, func(src plan.Source) ([]route.Place, error) {
			p = plan.NewUpdate(&some, src, d.Exec.Abilities, newObjectID, env)
			return p.Missing, nil
		})
		if err != nil {
			return nil, err
		}
		req.Plan = p
		return d.Exec.Write(ctx, p, numbered(options, only))
	})
	if err != nil {
		return err
	}
	req.failed = len(result.Errors) > 0
	reply.Elements = result.AppendFields(reply.Elements, true)
	return nil
}
