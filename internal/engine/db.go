package engine

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure a store.
type Options struct {
	Dir           string        // created when missing
	FS            vfs.FS        // nil: the disk; tests pass a crashable one
	CacheBytes    int64         // block cache; 0: 512 MiB
	MemTableBytes int64         // one memtable; 0: 64 MiB
	SyncInterval  time.Duration // an acknowledged write is synced within this; 0: 100 ms
	SyncEachWrite bool          // every write waits for its sync
	SnapshotAge   time.Duration // a cursor's snapshot older than this is let go and the cursor seeks again; 0: 60 s
	Log           *slog.Logger
}

// DB is an open store.
type DB struct {
	pebble *pebble.DB
}

// newSnapshot opens a snapshot of the store, or fails once it is closing.
func (db *DB) newSnapshot() (*pebble.Snapshot, error) { panic("unbuilt") }

// Open opens or creates the store in o.Dir. A directory in use, not writable, or written by a newer format is an error that names it.
func Open(o Options) (*DB, error) { panic("unbuilt") }

// Close waits for running writes, syncs and closes. Open cursors fail afterwards.
func (db *DB) Close() error { panic("unbuilt") }

// Stats are figures of the whole store, in bytes; log and tables apart, since a drop frees tables only.
type Stats struct {
	LogBytes      int64 // write-ahead log
	TableBytes    int64 // sorted tables on disk, obsolete ones not yet deleted included
	ObsoleteBytes int64
	MemTableBytes int64
	CacheBytes    int64
	CacheHits     int64
	CacheMisses   int64
	Compactions   int64
}

// Stats reads the store's figures.
func (db *DB) Stats() Stats { panic("unbuilt") }
