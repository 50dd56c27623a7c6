package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// find answers find (https://www.mongodb.com/docs/manual/reference/command/find/).
func (d *Data) find(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.guardedCollection(ctx, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardCursor(ctx, a.source, req, reply)
	}
	f, err := statement.ParseFind(kept(req))
	if err != nil {
		return err
	}
	prefer(&f.Generic, req)
	env, err := d.envWith(f.Let)
	if err != nil {
		return err
	}
	p, err := plan.NewFind(f, a.source, env)
	if err != nil {
		return err
	}
	req.Plan = p
	first := batch{size: f.BatchSize, single: f.SingleBatch, limit: f.Limit}
	return d.firstBatch(ctx, req, reply, a.source.Namespace(), d.Exec.Find(p), first)
}

// kept copies the body of a command that may leave a cursor open: what is compiled from it refers to its bytes, and those are the
// connection's again when the command is over.
func kept(req *Request) bson.Document {
	if req.InTransaction {
		return outside(req)
	}
	return append(bson.Document(nil), req.Body...)
}

// batch says how much the first reply of a cursor holds.
type batch struct {
	size   int64 // documents; -1: MongoDB's 101
	single bool  // no cursor is left open
	limit  int64 // the stream ends there; 0: unknown
}

// The default size of a first batch, in documents, and of any batch, in bytes
// (https://www.mongodb.com/docs/manual/core/cursors/#cursor-batches).
const (
	firstBatchDocuments = 101
	batchBytes          = bson.MaxDocumentSize
)

// firstBatch answers with a stream's first batch and leaves a cursor open for the rest.
func (d *Data) firstBatch(ctx context.Context, req *Request, reply *Reply, ns string, stream query.Documents, b batch) error {
	content := exec.NewLimitedContent(stream, b.limit).Whole(b.single)
	taken := false
	defer func() { // also of a panic, which goes on
		if !taken {
			content.Close()
		}
	}()
	more := true
	var id int64
	var err error
	if b.size < 0 {
		b.size = firstBatchDocuments
	}
	var cursor backend.CursorBuilder
	dst := cursor.Start(reply.Elements, false)
	if b.size > 0 {
		dst, _, more, err = content.NextBatch(ctx, dst, int(b.size), batchBytes, reply.Memory)
	}
	if err != nil {
		return err
	}
	cursor.Partial = content.Partial()
	taken = true
	if !more || b.single {
		err = content.Close()
	} else {
		id, err = d.Cursors.Add(content, d.cursorOptions(req, ns), d.Now())
	}
	reply.Elements = cursor.End(dst, id, ns)
	return err
}
