package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/cursor"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// getMore answers getMore, for cursors of every kind.
func (d *Data) getMore(ctx context.Context, req *Request, reply *Reply) error {
	g, err := statement.ParseGetMore(outside(req))
	if err != nil {
		return err
	}
	if err := d.enter(req); err != nil {
		return err
	}
	if d.deployments.any {
		d.reading(req, d.Catalog.Snapshot(), g.Database, g.Collection)
	}
	ns := g.Database + "." + g.Collection
	p, ctx, err := d.Cursors.Pin(ctx, d.use(req, g.Cursor, ns))
	if err != nil {
		return err
	}
	more, pinned := false, true
	unpin := func() error {
		pinned = false
		return p.Unpin(more, d.Now())
	}
	defer func() { // after an error, or a panic, which goes on
		if pinned {
			unpin()
		}
	}()
	switch content := p.Content().(type) {
	case cursor.Replies:
		more, err = d.nextReply(ctx, req, reply, p, content)
	case cursor.Batches:
		req.composed = true
		more, err = d.nextBatch(ctx, req, reply, p, content, g)
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := unpin(); err != nil {
		return err
	}
	reply.Again = req.Exhaust && more
	return nil
}

// nextReply answers with a backend's own reply. How long that waits for documents is the backend's business: its getMore carries the time.
func (d *Data) nextReply(ctx context.Context, req *Request, reply *Reply, p *cursor.Pinned, content cursor.Replies) (more bool, err error) {
	doc, docs, more, err := content.NextReply(ctx, req.Body, reply.Memory)
	p.Served(docs)
	reply.Document = doc
	return more, err
}

// nextBatch answers with documents that the gateway puts together.
func (d *Data) nextBatch(ctx context.Context, req *Request, reply *Reply, p *cursor.Pinned, content cursor.Batches, g *statement.GetMore) (more bool, err error) {
	ctx, stop := limited(ctx, req.MaxTime)
	defer stop()
	var builder backend.CursorBuilder
	dst := builder.Start(reply.Elements, true)
	dst, docs, more, err := content.NextBatch(ctx, dst, int(g.BatchSize), batchBytes, reply.Memory)
	p.Served(docs)
	if err != nil {
		return false, interrupted(ctx, err)
	}
	if p, ok := content.(interface{ Partial() bool }); ok {
		builder.Partial = p.Partial()
	}
	id := g.Cursor
	if !more {
		id = 0
	}
	reply.Elements = builder.End(dst, id, g.Database+"."+g.Collection)
	return more, nil
}

func (d *Data) use(req *Request, id int64, ns string) cursor.Use {
	u := cursor.Use{ID: id, Namespace: ns, Session: req.Session}
	if req.Conn != nil {
		u.User = req.Conn.User
	}
	return u
}

// killCursors answers killCursors.
func (d *Data) killCursors(_ context.Context, req *Request, reply *Reply) error {
	k, err := statement.ParseKillCursors(outside(req))
	if err != nil {
		return err
	}
	killed, notFound := bsoncore.NewArrayBuilder(), bsoncore.NewArrayBuilder()
	for _, id := range k.Cursors {
		found, err := d.Cursors.Kill(d.use(req, id, k.Database+"."+k.Collection))
		if err != nil {
			return err
		}
		if found {
			killed.AppendInt64(id)
		} else {
			notFound.AppendInt64(id)
		}
	}
	none := bsoncore.NewArrayBuilder().Build()
	dst := bsoncore.AppendArrayElement(reply.Elements, "cursorsKilled", killed.Build())
	dst = bsoncore.AppendArrayElement(dst, "cursorsNotFound", notFound.Build())
	dst = bsoncore.AppendArrayElement(dst, "cursorsAlive", none)
	reply.Elements = bsoncore.AppendArrayElement(dst, "cursorsUnknown", none)
	return nil
}
