package command

import (
	"context"

	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// findAndModify answers findAndModify (https://www.mongodb.com/docs/manual/reference/command/findAndModify/).
func (d *Data) findAndModify(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	f, err := statement.ParseFindAndModify(outside(req))
	if err != nil {
		return err
	}
	env, err := d.envWith(f.Let)
	if err != nil {
		return err
	}
	src := a.source
	for range planTries {
		var p *plan.FindAndModify
		err = d.ready(ctx, src, func(src plan.Source) ([]route.Place, error) {
			var err error
			if p, err = plan.NewFindAndModify(f, src, newObjectID, env); err != nil {
				return nil, err
			}
			return p.Missing, nil
		})
		if err != nil {
			return err
		}
		req.Plan = p
		// Its upsert may meet a partition that was dropped meanwhile, as in replanned.
		if reply.Document, err = d.Exec.FindAndModify(ctx, p, writeOptions(&f.Generic, req)); !mongoerr.Is(err, mongoerr.StaleConfig) {
			return err
		}
		if src, err = d.current(src); err != nil {
			return err
		}
	}
	return mongoerr.New(mongoerr.StaleConfig, "partitions of %s were dropped as fast as they were made", src.Namespace())
}
