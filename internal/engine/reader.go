package engine

import (
	"slices"
	"sync"
	"time"
)

// reader is something that holds a snapshot for longer than one call: a cursor. Both methods may be called while its own goroutine uses it.
type reader interface {
	// table is what it reads.
	table() *Table
	// release closes its snapshot and iterators; its next use fails with err.
	release(err error)
	// age closes its snapshot if it is older than Options.SnapshotAge and the reader idle; its next use goes on from its last key on a new one. It is
	// called every Options.ageInterval, does one bounded step of that, and is called again soon where it reports that there is more to do.
	age() (more bool)
}

// readers are the open cursors of the store.
type readers struct {
	mu   sync.Mutex
	open map[reader]struct{}
}

func (r *readers) init() { r.open = make(map[reader]struct{}) }

// track registers a reader; after it, the reader must look once more whether its table is gone.
func (db *DB) track(r reader) {
	db.readers.mu.Lock()
	defer db.readers.mu.Unlock()
	db.readers.open[r] = struct{}{}
}

// untrack forgets a reader that is closed. It must not be called by release or age.
func (db *DB) untrack(r reader) {
	db.readers.mu.Lock()
	defer db.readers.mu.Unlock()
	delete(db.readers.open, r)
}

// release takes the snapshots of a table's readers away, or with nil of all.
func (r *readers) release(t *Table, err error) {
	for _, o := range r.list() {
		if t == nil || o.table() == t {
			o.release(err)
		}
	}
}

// ageLoop lets go of old snapshots, a step of each reader's in turn. What a reader has to remember for that can take seconds: nothing else waits for it.
func (db *DB) ageLoop() {
	ticker := time.NewTicker(db.options.ageInterval)
	defer ticker.Stop()
	for {
		select {
		case <-db.stop:
			return
		case <-ticker.C:
		}
		for left := db.readers.list(); len(left) > 0 && !db.stopping(); {
			left = slices.DeleteFunc(left, func(r reader) bool { return !r.age() })
		}
	}
}

func (r *readers) list() []reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]reader, 0, len(r.open))
	for o := range r.open {
		out = append(out, o)
	}
	return out
}
