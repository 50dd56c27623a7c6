package embedded

import (
	"strconv"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (b *Backend) getMore(op operation, req *backend.Request) (bson.Document, error) {
	g, err := statement.ParseGetMore(req.Body)
	if err != nil {
		return nil, err
	}
	if g.MaxTimeMS > 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	name := engine.Name{Database: g.Database, Collection: g.Collection}
	c, err := b.cursors.take(g.Cursor, namespace(name))
	if err != nil {
		return nil, err
	}
	if name.Collection[0] != '$' {
		defer b.usage.note(name, usageGetMore, time.Now())
	}
	op, cancel := op.limited(c.budget)
	defer cancel()
	reply, err := b.nextBatch(op, c, g.BatchSize, req.Memory)
	if err != nil {
		return nil, op.explain(err)
	}
	return reply, nil
}

func (b *Backend) killCursors(_ operation, req *backend.Request) (bson.Document, error) {
	k, err := statement.ParseKillCursors(req.Body)
	if err != nil {
		return nil, err
	}
	var killed, missing []int64
	for _, id := range k.Cursors {
		if b.cursors.kill(id) {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	return newReply(func(dst []byte) []byte {
		dst = appendIDs(dst, "cursorsKilled", killed)
		dst = appendIDs(dst, "cursorsNotFound", missing)
		dst = appendIDs(dst, "cursorsAlive", nil)
		return appendIDs(dst, "cursorsUnknown", nil)
	}), nil
}

func appendIDs(dst []byte, key string, ids []int64) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, key)
	for i, id := range ids {
		dst = bsoncore.AppendInt64Element(dst, strconv.Itoa(i), id)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}
