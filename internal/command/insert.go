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
	in, err := statement.ParseInsert(&backend.Request{Body: outside(req), Sequences: req.Sequences})
	if err != nil {
		return err
	}
	options := writeOptions(&in.Generic, req)
	result, err := d.replanned(a.source, len(in.Documents), in.Ordered && !a.source.ByPartition, func(src plan.Source, only []int32) (*backend.WriteReply, error) {
		some := *in
		some.Documents = pick(in.Documents, only)
		var p *plan.Insert
		err := d.ready(ctx, src, func(src plan.Source) ([]route.Place, error) {
			p = plan.NewInsert(&some, src, d.Exec.Abilities, d.fill(), d.Now().UnixMilli())
			return p.Missing, nil
		})
		if err != nil {
			return nil, err
		}
		req.Plan = p
		return d.Exec.Insert(ctx, p, numbered(options, only))
	})
	if err != nil {
		return err
	}
	req.failed = len(result.Errors) > 0
	reply.Elements = result.AppendFields(reply.Elements, false)
	return nil
}
