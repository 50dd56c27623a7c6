package engine

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// borderBytes is the size from which a table gets files of its own: an excise frees whole files, so what a large table shared with its neighbours
// would stay on disk until those were compacted. Small tables share files; or each flush would write one for every
// partition of a collection split into hundreds.
const borderBytes = 4 << 20

// borders tells Pebble where its output files must end: at both ends of every large table. It is asked for the first key of each file; a file that
// begins in a large table ends with it, any other one before the next large table at the latest. Tables are what they were when the file was begun.
func (db *DB) borders(start []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	if len(start) < tablePrefixLen || start[0] != kindData {
		return policy, db.nextLarge(0), nil
	}
	id := binary.BigEndian.Uint32(start[1:])
	if db.isLarge(id) {
		return policy, appendPrefixEnd(nil, appendTablePrefix(nil, id)), nil
	}
	return policy, db.nextLarge(id + 1), nil
}

func (t *Table) isLarge() bool { return t.bytes.Load() >= borderBytes }

func (db *DB) isLarge(id uint32) bool {
	db.registry.RLock()
	defer db.registry.RUnlock()
	for _, t := range db.registry.tables {
		if t.id == id {
			return t.isLarge()
		}
	}
	return false
}

// nextLarge returns where the first large table with at least this id begins, or nil if there is none.
func (db *DB) nextLarge(id uint32) []byte {
	db.registry.RLock()
	defer db.registry.RUnlock()
	var next *Table
	for _, t := range db.registry.tables {
		if t.id >= id && t.isLarge() && (next == nil || t.id < next.id) {
			next = t
		}
	}
	if next == nil {
		return nil
	}
	return appendTablePrefix(nil, next.id)
}
