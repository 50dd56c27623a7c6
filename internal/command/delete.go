package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

// delete answers delete (https://www.mongodb.com/docs/manual/reference/command/delete/).
func (d *Data) delete(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	s, err := statement.ParseDelete(&backend.Request{Body: outside(req), Sequences: req.Sequences})
	if err != nil {
		return err
	}
	env, err := d.envWith(s.Let)
	if err != nil {
		return err
	}
	p := plan.NewDelete(s, a.source, d.Exec.Abilities, env)
	req.Plan = p
	result, err := d.Exec.Write(ctx, p, writeOptions(&s.Generic, req))
	if err != nil {
		return err
	}
	req.failed = len(result.Errors) > 0
	reply.Elements = result.AppendFields(reply.Elements, false)
	return nil
}
