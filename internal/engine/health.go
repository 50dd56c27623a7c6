package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/mongoerr"
)

// health knows whether writes may be taken.
//
// Two states refuse them. Short of space: the disk is full or nearly so; it ends by itself once there is room again. Broken: the log or the
// manifest could not be written, so what Pebble holds in memory may not be on disk; it ends when the process starts anew and reads the log.
type health struct {
	dir     string
	disk    vfs.FS       // without the watch for a full disk
	fs      vfs.FS       // what Pebble writes through
	waiting atomic.Int64 // see logFS
	log     *slog.Logger
	ballast int64
	reserve uint64

	written atomic.Int64  // bytes of batches since the last look at the free space
	look    chan struct{} // asks for one

	short   atomic.Bool
	failure atomic.Pointer[error]
}

// ballastFile takes room that is given back when the disk is full, so that the log's last records and the manifest can still be written.
const ballastFile = "BALLAST"

// reserveBytes is the free space below which writes are refused, before the disk is quite full, besides room for a memtable: what has been
// acknowledged must still find its way into tables, or its log can't go. Drops may use it: they are the way out.
const reserveBytes = 64 << 20

// spareBytes is the free space below which not even drops are taken: room for log records and the manifest's.
const spareBytes = 4 << 20

func newHealth(o Options) *health {
	h := &health{
		dir: o.Dir, disk: o.FS, log: o.Log, ballast: o.ballastBytes, reserve: reserveBytes + uint64(o.MemTableBytes), look: make(chan struct{}, 1),
	}
	h.fs = vfs.OnDiskFull(logFS{FS: o.FS, waiting: &h.waiting}, h.full)
	return h
}

// writable returns why writes are refused, or nil.
func (h *health) writable() error {
	if err := h.failure.Load(); err != nil {
		if errors.Is(*err, syscall.ENOSPC) {
			return mongoerr.New(mongoerr.OutOfDiskSpace, "data folder %q: no space left on device while writing the log; start again once there is room", h.dir)
		}
		return mongoerr.New(mongoerr.InternalError, "data folder %q: writing failed, start again: %s", h.dir, *err)
	}
	if h.short.Load() {
		return mongoerr.New(mongoerr.OutOfDiskSpace, "data folder %q: no space left on device, writes are refused until there is", h.dir)
	}
	return nil
}

// reserveUsable returns why not even the reserve may be written to, or nil.
func (h *health) reserveUsable() error {
	err := h.writable()
	if err == nil || h.broken() {
		return err
	}
	if usage, unknown := h.disk.GetDiskUsage(h.dir); unknown != nil || usage.AvailBytes < spareBytes {
		return err
	}
	return nil
}

func (h *health) broken() bool { return h.failure.Load() != nil }

// fail makes the store read-only for the rest of the process.
func (h *health) fail(err error) {
	if h.failure.CompareAndSwap(nil, &err) {
		h.log.Error("engine: writing failed, the store is read-only until it is started again", "dir", h.dir, "error", err)
	}
}

// full is called by Pebble's file system on the first ENOSPC; the write that met it is tried once more afterwards.
func (h *health) full() {
	if !h.short.Swap(true) {
		h.log.Error("engine: no space left on device, writes are refused", "dir", h.dir)
	}
	if err := h.disk.Remove(h.ballastPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		h.log.Error("engine: remove ballast", "dir", h.dir, "error", err)
	}
}

func (h *health) ballastPath() string { return h.disk.PathJoin(h.dir, ballastFile) }

// check compares the free space with the reserve. Where the file system can't tell, a full disk is believed over as soon as
// the ballast can be made again.
func (h *health) check() {
	h.written.Store(0)
	if h.removed() {
		return
	}
	usage, err := h.disk.GetDiskUsage(h.dir)
	known := err == nil
	if known && usage.AvailBytes < h.reserve {
		if !h.short.Swap(true) {
			h.log.Error("engine: disk nearly full, writes are refused", "dir", h.dir, "freeBytes", usage.AvailBytes, "reserveBytes", h.reserve)
		}
		return
	}
	if _, err := h.disk.Stat(h.ballastPath()); err == nil && !h.short.Load() {
		return
	}
	if known && usage.AvailBytes < h.reserve+uint64(h.ballast) {
		return
	}
	if err := h.makeBallast(); err != nil {
		h.short.Store(true)
		return
	}
	if h.short.Swap(false) {
		h.log.Info("engine: there is space again, writes are taken", "dir", h.dir)
	}
}

// removed notices that somebody has taken the data folder away. Its open files still take writes, which nobody will ever find.
func (h *health) removed() bool {
	if _, err := h.disk.Stat(h.disk.PathJoin(h.dir, formatFile)); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	h.fail(errors.New("the data folder has been removed"))
	return true
}

// lookBytes is how much may be written between two looks at the free space: a second is long for a fast writer.
const lookBytes = 8 << 20

// wrote counts what goes to the disk, and asks for a look at it now and then.
func (h *health) wrote(n int) {
	if h.written.Add(int64(n)) < lookBytes {
		return
	}
	select {
	case h.look <- struct{}{}:
	default:
	}
}

func (h *health) makeBallast() error {
	f, err := h.disk.Create(h.ballastPath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create ballast: %w", err)
	}
	if err := f.Preallocate(0, h.ballast); err != nil {
		return errors.Join(fmt.Errorf("reserve ballast: %w", err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write ballast: %w", err)
	}
	return nil
}

// fatal is what Fatalf throws, since Pebble does not expect it to return.
type fatal struct{ err error }

// Infof logs Pebble's chatter.
func (h *health) Infof(format string, args ...any) {
	h.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf logs Pebble's errors.
func (h *health) Errorf(format string, args ...any) {
	h.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is called where Pebble cannot go on: the store is made read-only and the caller's stack unwound up to guard. In one of
// Pebble's own goroutines that ends the process, which loses nothing that was synced.
func (h *health) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("%s: %w", format, cause)
		}
	}
	h.fail(err)
	panic(fatal{err})
}

func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if errors.Is(err, pebble.ErrCancelledCompaction) {
				// A table was dropped whose files it was reading: Pebble begins again without them.
				h.log.Debug("engine: compaction begins again", "dir", h.dir)
				return
			}
			h.log.Error("engine: background work failed", "dir", h.dir, "error", err)
			if errors.Is(err, syscall.ENOSPC) {
				h.short.Store(true)
			}
		},
		DiskSlow: func(i pebble.DiskSlowInfo) { h.log.Warn("engine: disk is slow", "event", i.String()) },
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			h.log.Warn("engine: writers wait for flushes or compactions", "reason", i.Reason)
		},
		WriteStallEnd: func() { h.log.Info("engine: writers go on") },
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			h.log.Error("engine: corrupt file", "path", i.Path, "error", i.Details)
		},
	}
}

// guard runs a call into Pebble that writes, and turns the panics by which Pebble reports a failed log into an error.
func (h *health) guard(write func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fatal:
			err = h.writable()
		case error:
			// A record that the log did not take. Pebble's commit lock stays held: nothing may write any more.
			h.fail(r)
			err = h.writable()
		default:
			panic(r)
		}
	}()
	return write()
}

// commit applies a batch; it is visible afterwards, and not with the operating system yet, see flushLog.
func (db *DB) commit(b *pebble.Batch) error {
	if err := db.health.writable(); err != nil {
		return err
	}
	return db.apply(b)
}

// commitFromReserve is commit for a batch that helps to give space back.
func (db *DB) commitFromReserve(b *pebble.Batch) error {
	if err := db.health.reserveUsable(); err != nil {
		return err
	}
	return db.apply(b)
}

func (db *DB) apply(b *pebble.Batch) error {
	n := b.Len()
	err := db.health.guard(func() error { return b.Commit(pebble.NoSync) })
	if err != nil {
		return err
	}
	db.dirty.Store(true)
	db.health.wrote(n)
	return nil
}

// sync returns once everything committed so far is on disk.
func (db *DB) sync() error {
	if db.health.broken() {
		return db.health.writable()
	}
	db.health.waiting.Add(1)
	defer db.health.waiting.Add(-1)
	return db.flushLog()
}

// flushLog returns once everything committed so far is with the operating system, so that it outlives the process.
func (db *DB) flushLog() error {
	return db.health.guard(func() error { return db.pebble.LogData(nil, pebble.Sync) })
}

// syncLoop syncs what has been acknowledged without. Two rounds fit into the interval, so that nothing waits longer.
func (db *DB) syncLoop() {
	ticker := time.NewTicker(db.options.SyncInterval / 2)
	defer ticker.Stop()
	for {
		select {
		case <-db.stop:
			return
		case <-ticker.C:
		}
		if !db.dirty.Swap(false) {
			continue
		}
		if err := db.sync(); err != nil {
			db.options.Log.Error("engine: sync", "dir", db.options.Dir, "error", err)
		}
	}
}

// healthLoop looks after free space.
func (db *DB) healthLoop() {
	db.health.check()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-db.stop:
			return
		case <-ticker.C:
			db.health.check()
			db.retryUnfinished()
		case <-db.health.look:
			db.health.check()
		}
	}
}
