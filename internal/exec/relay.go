package exec

import (
	"context"
	"encoding/binary"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// Relay is a cursor of one backend whose batches go to the client as they come: with all that the backend says beside the documents, such as a change
// stream's resume token.
type Relay struct {
	exec   *Executor
	target plan.Target
	id     int64 // 0: exhausted
}

// Relay takes over a cursor that a backend opened.
func (e *Executor) Relay(t plan.Target, id int64) *Relay { return &Relay{exec: e, target: t, id: id} }

// NextReply sends the client's getMore to the backend, with the backend's own cursor in it, and returns the answer with the client's. An answer with
// ok: 0 is given back like any other, and ends the cursor.
func (r *Relay) NextReply(ctx context.Context, getMore bson.Document, account *memory.Account) (reply bson.Document, docs int, more bool, err error) {
	body, id, ok := withCursor(getMore, r.id)
	if !ok {
		return nil, 0, true, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'getMore.getMore' must be of type long")
	}
	reply, err = r.exec.Forward(ctx, r.target.Backend, &backend.Request{Body: body, Memory: account})
	if err != nil {
		return nil, 0, false, err
	}
	c, err := backend.ParseCursorReply(reply)
	if err != nil {
		return reply, 0, false, nil
	}
	if c.ID == 0 {
		r.id = 0
	} else {
		c.SetID(id)
	}
	it := bson.Elements(c.Batch)
	for it.Next() {
		docs++
	}
	return reply, docs, r.id != 0, nil
}

// cursorOffset is where the cursor's id stands in a getMore: behind the length, the type and the name of the first element.
const cursorOffset = 4 + 1 + len("getMore") + 1

// withCursor copies a getMore with another cursor's id in it, and returns the one that stood there.
func withCursor(getMore bson.Document, id int64) (body bson.Document, was int64, ok bool) {
	name, v, _ := bson.First(getMore)
	if name != "getMore" || v.Type != bson.TypeInt64 {
		return nil, 0, false
	}
	body = append(bson.Document(nil), getMore...)
	binary.LittleEndian.PutUint64(body[cursorOffset:], uint64(id))
	return body, v.Int64(), true
}

// Close kills the backend's cursor, if it still is there.
func (r *Relay) Close() error {
	s := r.exec.stream(r.target)
	s.opened, s.id = true, r.id
	return s.Close()
}
