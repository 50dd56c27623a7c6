package engine

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// greatest is an upper bound of a table's document keys, so that documents with ascending _ids are known to be new without a
// look at the disk. It may lie above every document, never below one.
type greatest struct {
	mu    sync.Mutex
	known bool
	key   []byte
}

// raise makes key the bound if it is above it, and appends to dst the bound as it was: an _id above that, whose latch the caller
// holds, is not in the table. key is the greatest of those that are about to be inserted.
func (t *Table) raise(dst, key []byte) ([]byte, error) {
	g := &t.greatest
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known {
		last, err := t.lastDocument()
		if err != nil {
			return dst, err
		}
		g.key, g.known = last, true
	}
	dst = append(dst, g.key...)
	if bytes.Compare(key, g.key) > 0 {
		g.key = append(g.key[:0], key...)
	}
	return dst, nil
}

// lastDocument returns the key of the last document, or nil. It is read once in the life of a handle.
func (t *Table) lastDocument() ([]byte, error) {
	it, err := t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: t.documentPrefix, UpperBound: t.documentEnd})
	if err != nil {
		return nil, fmt.Errorf("read last document of %s: %w", t.Name(), err)
	}
	var last []byte
	if it.Last() {
		last = bytes.Clone(it.Key())
	}
	return last, errors.Join(it.Error(), it.Close())
}
