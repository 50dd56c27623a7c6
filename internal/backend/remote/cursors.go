package remote

import (
	"sync"
	"time"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
)

// cursors remembers which server holds each open cursor. A cursor that ended without a reply that says so (it timed out on the server, its client
// was lost) is forgotten after keptIdle. Safe for concurrent use.
type cursors struct {
	mu struct {
		sync.Mutex
		open  map[int64]held
		sweep int // the number of cursors at which the idle ones are looked for next
	}
}

type held struct {
	server address.Address
	used   time.Time
}

// keptIdle is longer than a server keeps an unused cursor: ten minutes, or as long as its session, 30 minutes
// (https://www.mongodb.com/docs/manual/core/cursors/#cursor-management-considerations).
const keptIdle = time.Hour

// firstSweep is how many cursors are remembered before any is taken for forgotten.
const firstSweep = 1024

// holder returns the server that holds the cursor of a getMore or killCursors. Cursors of several servers in one killCursors go to
// that of the first: the gateway kills cursors one by one.
func (c *cursors) holder(name string, arg bson.Value, body bson.Document) (address.Address, bool) {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.mu.open[id]
	return h.server, ok
}

// note remembers which server holds a new cursor, and forgets cursors that have ended.
func (c *cursors) note(name string, arg bson.Value, reply bson.Document, server address.Address, now time.Time) {
	if name == "killCursors" {
		c.forgetKilled(reply)
		return
	}
	first, _, _ := bson.First(reply)
	if first != "cursor" && name != "getMore" {
		return
	}
	opened := cursorOf(reply)
	if opened == 0 && name != "getMore" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if opened != 0 {
		c.keepLocked(opened, held{server, now})
	} else {
		id, _ := arg.AsInt64OK()
		delete(c.mu.open, id)
	}
}

// cursorOf returns the id of the cursor that a reply leaves open; 0: none.
func cursorOf(reply bson.Document) int64 {
	cursor, _ := bson.Get(reply, "cursor")
	v, _ := bson.Get(cursor.Data, "id")
	id, _ := v.AsInt64OK()
	return id
}

// keepLocked adds a cursor. Whenever there are twice as many as were left by the last look at all of them, the idle ones go: a constant cost a cursor.
func (c *cursors) keepLocked(id int64, h held) {
	if c.mu.open == nil {
		c.mu.open, c.mu.sweep = map[int64]held{}, firstSweep
	}
	c.mu.open[id] = h
	if len(c.mu.open) < c.mu.sweep {
		return
	}
	for other, o := range c.mu.open {
		if h.used.Sub(o.used) > keptIdle {
			delete(c.mu.open, other)
		}
	}
	c.mu.sweep = max(firstSweep, 2*len(c.mu.open))
}

func (c *cursors) forgetKilled(reply bson.Document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range [...]string{"cursorsKilled", "cursorsNotFound"} {
		ids, _ := bson.Get(reply, key)
		it := bson.Elements(ids.Data)
		for it.Next() {
			id, _ := it.Value().AsInt64OK()
			delete(c.mu.open, id)
		}
	}
}
