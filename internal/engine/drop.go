package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/mongoerr"
)

// DropTable removes a table at a cost that does not depend on its size; NamespaceNotFound if there is none. Cursors on it fail with QueryPlanKilled.
//
// It returns once the drop is on disk and nobody sees the table any more; the space is given back right after, by one goroutine, and after a
// crash by the next Open.
func (db *DB) DropTable(name Name) error {
	if err := db.begin(); err != nil {
		return err
	}
	defer db.end()
	db.ddl.Lock()
	defer db.ddl.Unlock()
	t, ok := db.Table(name)
	if !ok {
		return mongoerr.New(mongoerr.NamespaceNotFound, "ns not found")
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	if err := t.putDropping(b); err != nil {
		return fmt.Errorf("drop %s: %w", name, err)
	}
	if err := db.commitFromReserve(b); err != nil {
		return err
	}
	// The space goes by a change of the manifest, which the log knows nothing of: the state must be on disk before it.
	if err := db.sync(); err != nil {
		return err
	}
	db.registry.Lock()
	delete(db.registry.tables, name)
	db.registry.Unlock()
	t.retire()
	return nil
}

// putDropping adds to a batch that the table is being dropped.
func (t *Table) putDropping(b *pebble.Batch) error {
	r := t.record(nil)
	r.dropping = true
	return r.put(b)
}

// retire ends the use of a table whose drop is on disk: writers are through and readers let go of their snapshots when it returns. Under db.ddl.
func (t *Table) retire() {
	v := newVersion(nil)
	v.dropped = true
	t.publish(v)
	t.db.readers.release(t, t.killed())
	t.db.removal.add(t.id)
}

// removal are the tables whose space is to be given back.
type removal struct {
	mu      sync.Mutex
	pending []uint32
	wake    chan struct{}
}

func (r *removal) init() { r.wake = make(chan struct{}, 1) }

func (r *removal) add(table uint32) {
	r.mu.Lock()
	r.pending = append(r.pending, table)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *removal) first() (uint32, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return 0, false
	}
	return r.pending[0], true
}

func (r *removal) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = r.pending[1:]
}

// removeLoop gives the space of dropped tables back, one after another.
func (db *DB) removeLoop() {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		select {
		case <-db.stop:
			return
		case <-retry.C:
		case <-db.removal.wake:
		}
		for !db.health.broken() {
			id, ok := db.removal.first()
			if !ok {
				break
			}
			if err := db.remove(id); err != nil {
				db.options.Log.Error("engine: give back the space of a dropped table", "dir", db.options.Dir, "table", id, "error", err)
				break
			}
			db.removal.done()
		}
	}
}

// remove takes a table's keys away and then its record. An excise costs a change of the manifest whatever the size, and frees whole files at
// once; nobody reads the table any more, so that it doesn't matter that it shows through snapshots. It is tried again as a whole after a failure.
func (db *DB) remove(table uint32) error {
	start := appendTablePrefix(nil, table)
	end := appendPrefixEnd(nil, start)
	err := db.health.guard(func() error {
		return db.pebble.Excise(context.Background(), pebble.KeyRange{Start: start, End: end})
	})
	if err != nil {
		return fmt.Errorf("excise table: %w", err)
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	if err := b.Delete(appendRegistryKey(nil, table), nil); err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return db.commitFromReserve(b)
}
