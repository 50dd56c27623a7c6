package engine

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/mongoerr"
)

// version is what a table is at one time: its indexes, and whether it is there at all. It is immutable; a change publishes another one and
// waits until the last writer that works by the old one is through. Versions are compared by pointer.
type version struct {
	indexes []*index // also those that are being built or dropped, in order of creation; _id_ is not among them
	dropped bool

	writers atomic.Int64
	retired atomic.Bool
	drained chan struct{}
	once    sync.Once
}

func newVersion(indexes []*index) *version {
	return &version{indexes: indexes, drained: make(chan struct{})}
}

// enter pins the table's version for one batch, from before the first read until the batch is visible. It never waits.
func (t *Table) enter() (*version, error) {
	for {
		v := t.version.Load()
		if v.dropped {
			return nil, t.notFound()
		}
		v.writers.Add(1)
		if t.version.Load() == v {
			return v, nil
		}
		v.leave()
	}
}

// leave ends what enter began.
func (v *version) leave() {
	if v.writers.Add(-1) == 0 && v.retired.Load() {
		v.once.Do(func() { close(v.drained) })
	}
}

// publish makes v the table's version and returns once no writer works by the one before. Only under db.ddl.
func (t *Table) publish(v *version) {
	old := t.version.Swap(v)
	old.retired.Store(true)
	if old.writers.Load() == 0 {
		old.once.Do(func() { close(old.drained) })
	}
	<-old.drained
}

// snapshot opens a snapshot of the store and returns the version of the table that belongs to it: the indexes of that version that are
// ready are complete in the snapshot. QueryPlanKilled on a dropped table. The caller closes the snapshot.
//
// A reader that keeps the snapshot for long checks gone after each read.
func (t *Table) snapshot() (*pebble.Snapshot, *version, error) {
	for {
		v := t.version.Load()
		if v.dropped {
			return nil, nil, t.killed()
		}
		s, err := t.db.newSnapshot()
		if err != nil {
			return nil, nil, err
		}
		if t.version.Load() == v {
			return s, v, nil
		}
		if err := s.Close(); err != nil {
			return nil, nil, err
		}
	}
}

// gone returns QueryPlanKilled once the table has been dropped. A reader calls it after reading and before it gives the result away: the
// flag is set before the first byte is removed, and a drop shows through snapshots.
func (t *Table) gone() error {
	if t.version.Load().dropped {
		return t.killed()
	}
	return nil
}

// ready returns the indexes that readers may use.
func (v *version) ready() []*index {
	var out []*index
	for _, ix := range v.indexes {
		if ix.state == indexReady {
			out = append(out, ix)
		}
	}
	return out
}

func (t *Table) notFound() error {
	return mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", t.Name())
}

func (t *Table) killed() error {
	return mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped: %s", t.Name())
}
