package embedded

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// usageKind is a column of the top command.
type usageKind uint8

const (
	usageQuery usageKind = iota
	usageGetMore
	usageInsert
	usageUpdate
	usageDelete
	usageCommand
	usageKinds
)

// tally is the number and the duration of one table's operations of one kind.
type tally struct{ count, nanos atomic.Int64 }

// usage counts operations by table, for the top command and serverStatus. It knows tables that are there only.
type usage struct {
	exists func(engine.Name) bool
	mu     sync.RWMutex
	tables map[engine.Name]*[usageKinds]tally
}

func newUsage(exists func(engine.Name) bool) *usage {
	return &usage{exists: exists, tables: map[engine.Name]*[usageKinds]tally{}}
}

// note counts one operation that began at start. That of a table that was dropped meanwhile is left out.
func (u *usage) note(name engine.Name, kind usageKind, start time.Time) {
	u.mu.RLock()
	t := u.tables[name]
	u.mu.RUnlock()
	if t == nil {
		if t = u.add(name); t == nil {
			return
		}
	}
	t[kind].count.Add(1)
	t[kind].nanos.Add(int64(time.Since(start)))
}

// add returns a table's counts, or nil if it is gone. A drop takes the table away before it calls forget: what is added before that goes with it.
func (u *usage) add(name engine.Name) *[usageKinds]tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.tables[name]
	if t == nil && u.exists(name) {
		t = new([usageKinds]tally)
		u.tables[name] = t
	}
	return t
}

// forget drops the counts of a table that is gone.
func (u *usage) forget(name engine.Name) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.tables, name)
}

// names returns the tables counted, in order.
func (u *usage) names() []engine.Name {
	u.mu.RLock()
	defer u.mu.RUnlock()
	names := make([]engine.Name, 0, len(u.tables))
	for n := range u.tables {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b engine.Name) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Collection, b.Collection))
	})
	return names
}

// of returns the counts of a table.
func (u *usage) of(name engine.Name) *[usageKinds]tally {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.tables[name]
}

// top reports time and count by collection (https://www.mongodb.com/docs/manual/reference/command/top/).
func (b *Backend) top(_ operation, _ *backend.Request) (bson.Document, error) {
	return newReply(func(dst []byte) []byte {
		return appendDocument(dst, "totals", func(dst []byte) []byte {
			dst = bsoncore.AppendStringElement(dst, "note", "all times in microseconds")
			for _, name := range b.usage.names() {
				if t := b.usage.of(name); t != nil {
					dst = appendDocument(dst, namespace(name), func(dst []byte) []byte { return appendTop(dst, t) })
				}
			}
			return dst
		})
	}), nil
}

func appendTop(dst []byte, t *[usageKinds]tally) []byte {
	sum := func(kinds ...usageKind) (count, nanos int64) {
		for _, k := range kinds {
			count += t[k].count.Load()
			nanos += t[k].nanos.Load()
		}
		return count, nanos
	}
	for _, column := range []struct {
		name  string
		kinds []usageKind
	}{
		{"total", []usageKind{usageQuery, usageGetMore, usageInsert, usageUpdate, usageDelete, usageCommand}},
		{"readLock", []usageKind{usageQuery, usageGetMore}},
		{"writeLock", []usageKind{usageInsert, usageUpdate, usageDelete}},
		{"queries", []usageKind{usageQuery}},
		{"getmore", []usageKind{usageGetMore}},
		{"insert", []usageKind{usageInsert}},
		{"update", []usageKind{usageUpdate}},
		{"remove", []usageKind{usageDelete}},
		{"commands", []usageKind{usageCommand}},
	} {
		count, nanos := sum(column.kinds...)
		dst = appendDocument(dst, column.name, func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "time", nanos/1000)
			return bsoncore.AppendInt64Element(dst, "count", count)
		})
	}
	return dst
}
