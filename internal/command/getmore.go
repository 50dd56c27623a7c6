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
	g, err := statement.ParseGetMore(req.Body)
	if err != nil {
		return err
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
	var builder backend.CursorBuilder
	dst := builder.Start(reply.Elements, true)
	dst, _, goesOn, err := p.NextBatch(ctx, dst, int(g.BatchSize), batchBytes, reply.Memory)
	if err != nil {
		return interrupted(ctx, err)
	}
	more = goesOn
	if err := unpin(); err != nil {
		return err
	}
	id := g.Cursor
	if !more {
		id = 0
	}
	reply.Elements = builder.End(dst, id, ns)
	if req.Exhaust && more {
		reply.Again = true
	}
	return nil
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
	k, err := statement.ParseKillCursors(req.Body)
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
