package command

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// forwardWrite forwards a write to a plain collection.
func (d *Data) forwardWrite(ctx context.Context, a view, req *Request, reply *Reply) error {
	if err := a.writable(); err != nil {
		return err
	}
	return d.forward(ctx, a.source.Backend, req, reply)
}

// planTries bounds how often a write is planned again because its partitions had to be made, and went again meanwhile.
const planTries = 20

// ready has a write planned, which names the partitions that are missing, and makes these, until the plan has all.
func (d *Data) ready(ctx context.Context, src plan.Source, planned func(plan.Source) ([]route.Place, error)) error {
	for range planTries {
		missing, err := planned(src)
		if err != nil || len(missing) == 0 {
			return err
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
	if req.HasTxnNumber && !req.InTransaction {
		req.retry = exec.Retry{LSID: g.LSID, Session: req.Session.Append(req.sessionRoom[:0]), TxnNumber: g.TxnNumber, Stmt: stmtNumbers(g)}
		o.Retry = &req.retry
	}
	return o
}

func itself(i int32) int32 { return i }

// stmtNumbers gives the stmtId of each statement: those of stmtIds, or counted from stmtId, which is 0 by default.
func stmtNumbers(g *statement.Generic) func(int32) int32 {
	if g.StmtIDs == nil {
		first := max(0, g.StmtID)
		if first == 0 {
			return itself
		}
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
