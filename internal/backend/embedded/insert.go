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
	w, err := newWriting(&i.Generic, i.Collection, req.Targets, len(i.Documents), i.Ordered)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	fill := statement.Fill{NewID: newObjectID, NewTimestamp: func() uint64 { return b.timestamps.Next(start) }}
	for k, doc := range i.Documents {
		stored, err := statement.Storable(doc, fill)
		if err != nil {
			if !w.refuse(k, err) {
				break
			}
			continue
		}
		w.add(k, engine.Write{Insert: stored})
	}
	reply, err := w.run(b, op)
	if err != nil {
		return nil, err
	}
	w.note(b, usageInsert, start)
	return writeReply(reply, false), nil
}

// note counts the command for the table of its first statement.
func (w *writing) note(b *Backend, kind usageKind, start time.Time) {
	if len(w.writes) == 0 {
		return
	}
	if _, exists := b.db.Table(w.writes[0].Table); exists {
		b.usage.note(w.writes[0].Table, kind, start)
	}
}
