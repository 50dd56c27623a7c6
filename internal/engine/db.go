package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// Options configure a store.
type Options struct {
	Dir           string        // created when missing
	FS            vfs.FS        // nil: the disk; tests pass a crashable one
	CacheBytes    int64         // block cache, beside the memtables; 0: 512 MiB
	MemTableBytes int64         // one memtable; 0: 64 MiB
	SyncInterval  time.Duration // an acknowledged write is synced within this; 0: 100 ms
	SyncAlways    bool          // every write waits for its sync
	SnapshotAge   time.Duration // a cursor's snapshot older than this is let go and the cursor seeks again; 0: 60 s
	RetryAge      time.Duration // the records of a session's retryable writes are kept for this long after its last one; 0: 30 min
	Log           *slog.Logger
	Memory        *memory.Budget // of what cursors hold; nil: without limit
	// ReserveDatabase is a database whose writes may, like drops, use the space that others leave free: that of records without which
	// nothing may be dropped. "": none.
	ReserveDatabase string

	ballastBytes int64         // see ballast; 0: 16 MiB
	ageInterval  time.Duration // between two looks at the ages of snapshots; 0: 1 s
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 512 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 64 << 20
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = 100 * time.Millisecond
	}
	if o.SnapshotAge == 0 {
		o.SnapshotAge = time.Minute
	}
	if o.RetryAge == 0 {
		o.RetryAge = 30 * time.Minute // localLogicalSessionTimeoutMinutes
	}
	if o.ballastBytes == 0 {
		o.ballastBytes = 16 << 20
	}
	if o.ageInterval == 0 {
		o.ageInterval = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// DB is an open store.
type DB struct {
	pebble  *pebble.DB
	options Options
	lock    *pebble.Lock
	health  *health
	latches latches
	retries retries
	readers readers
	removal removal

	unfinished unfinished

	// ddl is held by what changes the registry: tables and indexes made, dropped, renamed. No read and no write of documents needs it.
	ddl struct {
		sync.Mutex
		lastTable uint32
	}

	registry struct {
		sync.RWMutex
		tables map[Name]*Table
	}

	life struct {
		sync.RWMutex
		closed  bool
		running sync.WaitGroup
	}
	dirty      atomic.Bool // something has been committed since the last sync began
	stop       chan struct{}
	background sync.WaitGroup
}

// Open opens or creates the store in o.Dir. A directory in use, not writable, or written by a newer format is an error that names it.
// What a crash cut short, index builds and drops, is undone or finished.
func Open(o Options) (*DB, error) {
	o = o.withDefaults()
	lock, err := claim(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	db, err := open(o, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return db, nil
}

func open(o Options, lock *pebble.Lock) (*DB, error) {
	if err := errors.Join(checkFormat(o.FS, o.Dir), checkPebbleFormat(o.FS, o.Dir)); err != nil {
		return nil, err
	}
	db := &DB{options: o, lock: lock, stop: make(chan struct{})}
	db.health = newHealth(o)
	db.latches.init()
	db.retries.init()
	db.readers.init()
	db.removal.init()
	db.unfinished.init()
	db.registry.tables = make(map[Name]*Table)
	options := pebbleOptions(o, lock, db.health)
	options.Experimental.SpanPolicyFunc = db.borders
	p, err := pebble.Open(o.Dir, options)
	if err != nil {
		return nil, fmt.Errorf("open data folder %q: %w", o.Dir, err)
	}
	db.pebble = p
	if err := db.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("load data folder %q: %w", o.Dir, err), p.Close())
	}
	if err := db.finishIndexes(); err != nil {
		return nil, errors.Join(fmt.Errorf("finish index builds in %q: %w", o.Dir, err), p.Close())
	}
	for _, run := range []func(){db.syncLoop, db.healthLoop, db.ageLoop, db.removeLoop, db.expireLoop} {
		db.background.Go(run)
	}
	return db, nil
}

// Close waits for running writes, syncs and closes. Open cursors fail afterwards.
func (db *DB) Close() error {
	db.life.Lock()
	if db.life.closed {
		db.life.Unlock()
		return nil
	}
	db.life.closed = true
	db.life.Unlock()
	db.life.running.Wait()
	close(db.stop)
	db.background.Wait()
	db.readers.release(nil, errClosed)
	if db.health.broken() {
		return errors.Join(db.health.writable(), db.lock.Close())
	}
	return errors.Join(db.sync(), db.pebble.Close(), db.lock.Close())
}

var errClosed = mongoerr.New(mongoerr.InterruptedAtShutdown, "the store is closed")

// begin lets an operation in that touches the store; Close waits for its end.
func (db *DB) begin() error {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.life.closed {
		return errClosed
	}
	db.life.running.Add(1)
	return nil
}

func (db *DB) end() { db.life.running.Done() }

// newSnapshot opens a snapshot of the store, or fails once it is closing. Its holder is a reader (see track), so that Close can take it away.
func (db *DB) newSnapshot() (*pebble.Snapshot, error) {
	if err := db.begin(); err != nil {
		return nil, err
	}
	defer db.end()
	return db.pebble.NewSnapshot(), nil
}

// Stats are figures of the whole store, in bytes; log and tables apart, since a drop frees tables only.
type Stats struct {
	LogBytes       int64 // write-ahead log
	TableBytes     int64 // sorted tables on disk, obsolete ones not yet deleted included
	ObsoleteBytes  int64
	MemTableBytes  int64
	CacheBytes     int64
	CacheHits      int64
	CacheMisses    int64
	Compactions    int64
	CompactionDebt int64 // estimate of the bytes that compactions still have to rewrite
	Snapshots      int64
}

// Stats reads the store's figures; all zero once it is closed.
func (db *DB) Stats() Stats {
	if db.begin() != nil {
		return Stats{}
	}
	defer db.end()
	m := db.pebble.Metrics()
	obsolete := int64(m.Table.ObsoleteSize + m.Table.ZombieSize)
	var tables int64
	for i := range m.Levels {
		tables += m.Levels[i].TablesSize - int64(m.Levels[i].VirtualTablesSize)
	}
	return Stats{
		// The physical size leaves out the log that is being written.
		LogBytes:       int64(max(m.WAL.PhysicalSize, m.WAL.Size)),
		TableBytes:     tables + int64(m.Table.BackingTableSize) + obsolete,
		ObsoleteBytes:  obsolete,
		MemTableBytes:  int64(m.MemTable.Size + m.MemTable.ZombieSize),
		CacheBytes:     m.BlockCache.Size,
		CacheHits:      m.BlockCache.Hits,
		CacheMisses:    m.BlockCache.Misses,
		Compactions:    m.Compact.Count,
		CompactionDebt: int64(m.Compact.EstimatedDebt),
		Snapshots:      int64(m.Snapshots.Count),
	}
}
