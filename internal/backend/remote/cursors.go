package remote

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
)

// holder returns the server that holds the cursor of a getMore or killCursors. Cursors of several servers in one killCursors go to
// that of the first: the gateway kills cursors one by one.
func (b *Backend) holder(name string, arg bson.Value, body bson.Document) (address.Address, bool) {
	var id int64
	switch name {
	case "getMore":
		id, _ = arg.AsInt64OK()
	case "killCursors":
		v, _ := bson.Get(body, "cursors")
		_, first, _ := bson.First(v.Data)
		id, _ = first.AsInt64OK()
	default:
		return "", false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	addr, ok := b.cursors[id]
	return addr, ok
}

// noteCursor remembers which server holds a new cursor, and forgets cursors that have ended.
func (b *Backend) noteCursor(name string, arg bson.Value, reply bson.Document, addr address.Address) {
	if name == "killCursors" {
		b.forgetKilled(reply)
		return
	}
	first, _, _ := bson.First(reply)
	if first != "cursor" && name != "getMore" {
		return
	}
	c, err := backend.ParseCursorReply(reply)
	b.mu.Lock()
	defer b.mu.Unlock()
	if name == "getMore" && (err != nil || c.ID == 0) {
		id, _ := arg.AsInt64OK()
		delete(b.cursors, id)
	}
	if err == nil && c.ID != 0 {
		b.cursors[c.ID] = addr
	}
}

func (b *Backend) forgetKilled(reply bson.Document) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range [...]string{"cursorsKilled", "cursorsNotFound"} {
		ids, _ := bson.Get(reply, key)
		it := bson.Elements(ids.Data)
		for it.Next() {
			id, _ := it.Value().AsInt64OK()
			delete(b.cursors, id)
		}
	}
}
