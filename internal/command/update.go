package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/plan"
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
	env, err := d.envWith(u.Let)
	if err != nil {
		return err
	}
	var p *plan.Write
	err = d.ready(ctx, a.source, func(src plan.Source) []route.Place {
		p = plan.NewUpdate(u, src, d.Exec.Abilities, newObjectID, env)
		return p.Missing
	})
	if err != nil {
		return err
	}
	result, err := d.Exec.Write(ctx, p, writeOptions(&u.Generic, req))
	return finishWrite(result, err, true, reply)
}

// delete answers delete (https://www.mongodb.com/docs/manual/reference/command/delete/).
func (d *Data) delete(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	s, err := statement.ParseDelete(&backend.Request{Body: req.Body, Sequences: req.Sequences})
	if err != nil {
		return err
	}
	env, err := d.envWith(s.Let)
	if err != nil {
		return err
	}
	p := plan.NewDelete(s, a.source, d.Exec.Abilities, env)
	result, err := d.Exec.Write(ctx, p, writeOptions(&s.Generic, req))
	return finishWrite(result, err, false, reply)
}

// findAndModify answers findAndModify (https://www.mongodb.com/docs/manual/reference/command/findAndModify/).
func (d *Data) findAndModify(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	f, err := statement.ParseFindAndModify(req.Body)
	if err != nil {
		return err
	}
	env, err := d.envWith(f.Let)
	if err != nil {
		return err
	}
	var p *plan.FindAndModify
	var planErr error
	err = d.ready(ctx, a.source, func(src plan.Source) []route.Place {
		if p, planErr = plan.NewFindAndModify(f, src, newObjectID, env); planErr != nil {
			return nil
		}
		return p.Missing
	})
	if planErr != nil || err != nil {
		return firstError(planErr, err)
	}
	reply.Document, err = d.Exec.FindAndModify(ctx, p, writeOptions(&f.Generic, req))
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
