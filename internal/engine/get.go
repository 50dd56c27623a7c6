package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/query"
)

// keyBuffers are buffers for the keys of point reads.
var keyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Get returns the document with an _id, appended to dst, and whether it exists: the shortest way, which Find takes by itself for {_id: value}.
func (t *Table) Get(dst []byte, id bson.Value) ([]byte, bool, error) {
	return t.GetWithin(nil, dst, id)
}

// GetWithin is Get with an account that is charged for what dst has to grow, before it does.
func (t *Table) GetWithin(account *memory.Account, dst []byte, id bson.Value) ([]byte, bool, error) {
	if err := t.db.begin(); err != nil {
		return dst, false, err
	}
	defer t.db.end()
	key := keyBuffers.Get().(*[]byte)
	defer keyBuffers.Put(key)
	*key = appendDocumentKey((*key)[:0], t.id, id)
	v, closer, err := t.db.pebble.Get(*key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, t.gone()
	}
	if err != nil {
		return dst, false, fmt.Errorf("get document: %w", err)
	}
	if more := len(v) - (cap(dst) - len(dst)); more > 0 {
		if err := account.Grow(int64(more)); err != nil {
			return dst, false, firstError(err, closer.Close())
		}
	}
	dst = append(dst, v...)
	if err := closer.Close(); err != nil {
		return dst, false, fmt.Errorf("get document: %w", err)
	}
	return dst, true, t.gone()
}

// findOne is Find by _id: no snapshot, since there is one read.
func (t *Table) findOne(id bson.Value) (*Cursor, error) {
	c := &Cursor{t: t, left: 1, keys: 1, sorted: true, work: t.db.options.Memory.Account(memory.Queries)}
	doc, ok, err := t.GetWithin(&c.work, nil, id)
	if err != nil {
		c.work.Close()
		return nil, err
	}
	if ok {
		c.docs = 1
		c.one[0] = doc
		c.ready = c.one[:]
	}
	return c, nil
}

// fixedID returns the _id of a query that can give no other document than that with this _id, and whether it asks for nothing else.
func (q *Query) fixedID() (id bson.Value, only, ok bool) {
	if q.Hint.Type != 0 || q.Min != nil || q.Max != nil || q.Skip > 0 {
		return bson.Value{}, false, false
	}
	return query.FixedID(q.Filter)
}
