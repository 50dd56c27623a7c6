package embedded

import (
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/statement"
)

func (b *Backend) insert(op operation, req *backend.Request) (bson.Document, error) {
	i, err := statement.ParseInsert(req)
	if err != nil {
		return nil, err
	}
	w, err := newWriting(&i.Generic, i.Collection, req, len(i.Documents), i.Ordered)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	fill := statement.Fill{NewID: newObjectID, NewTimestamp: func() uint64 { return b.timestamps.Next(now) }}
	return w.answer(b, op, usageInsert, len(i.Documents), func(k int) (engine.Write, error) {
		stored, err := statement.Storable(i.Documents[k], fill)
		return engine.Write{Insert: stored}, err
	})
}
