package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
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
	err = d.ready(ctx, a.source, func(src plan.Source) []route.Place {
		p = plan.NewInsert(in, src, d.Exec.Abilities, newObjectID, d.Now().UnixMilli())
		return p.Missing
	})
	if err != nil {
		return err
	}
	result, err := d.Exec.Insert(ctx, p, writeOptions(&in.Generic, req))
	return finishWrite(result, err, false, reply)
}

// forwardWrite forwards a write to a plain collection.
func (d *Data) forwardWrite(ctx context.Context, a view, req *Request, reply *Reply) error {
	if err := a.writable(); err != nil {
		return err
	}
	return d.forward(ctx, a.source.Backend, req, reply)
}

// planTries bounds how often a write is planned again because its partitions had to be made, and went again meanwhile.
const planTries = 4

// ready plans a write and makes the partitions that are missing, until the plan has all.
func (d *Data) ready(ctx context.Context, src plan.Source, planned func(plan.Source) []route.Place) error {
	for range planTries {
		missing := planned(src)
		if len(missing) == 0 {
			return nil
		}
		s, err := d.Catalog.Ensure(ctx, src.Namespace(), missing)
		if err != nil {
			return err
		}
		if src.Collection = s.Collection(src.Namespace()); src.Collection == nil {
			return mongoerr.New(mongoerr.StaleConfig, "the layout of %s was removed during the write", src.Namespace())
		}
	}
	return mongoerr.New(mongoerr.StaleConfig, "partitions of %s were dropped as fast as they were made", src.Namespace())
}

// writeOptions are what a client's write carries to its parts.
func writeOptions(g *statement.Generic, req *Request) exec.Options {
	o := exec.Options{WriteConcern: g.WriteConcern, Comment: g.Comment}
	if req.HasTxnNumber {
		o.Retry = &exec.Retry{LSID: g.LSID, TxnNumber: g.TxnNumber, Stmt: stmtNumbers(g)}
	}
	return o
}

// stmtNumbers gives the stmtId of each statement: those of stmtIds, or counted from stmtId, which is 0 by default.
func stmtNumbers(g *statement.Generic) func(int32) int32 {
	if g.StmtIDs == nil {
		first := max(0, g.StmtID)
		return func(i int32) int32 { return first + i }
	}
	var ids []int32
	it := bson.Elements(g.StmtIDs)
	for it.Next() {
		n, _ := it.Value().AsInt32OK()
		ids = append(ids, n)
	}
	return func(i int32) int32 {
		if int(i) < len(ids) {
			return ids[i]
		}
		return i
	}
}

// finishWrite writes the reply of a write.
func finishWrite(r *backend.WriteReply, err error, update bool, reply *Reply) error {
	if err != nil {
		return err
	}
	reply.Elements = r.AppendFields(reply.Elements, update)
	return nil
}
