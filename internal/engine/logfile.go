package engine

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS lets a write be acknowledged once the operating system has its log record, and not only once the disk has it: then killing the
// process loses nothing that was acknowledged. Pebble has no such step: without a sync the tail of its log stays in the process's memory,
// and with one every write waits for the disk. So Pebble is always asked for a sync, which makes it write the tail out, and the log's files
// take only those to the disk that somebody waits for. Files other than the log's are as they were.
type logFS struct {
	vfs.FS
	waiting *atomic.Int64 // so many callers wait for the disk
}

// Create opens a new file.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.wrap(name, f, err)
}

// ReuseForWrite opens an old log under a new name.
func (fs logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.wrap(newname, f, err)
}

func (fs logFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &logFile{File: f, waiting: fs.waiting}, nil
}

// logFile is a file of the log. Pebble writes, syncs and closes it from one goroutine at a time.
type logFile struct {
	vfs.File
	waiting   *atomic.Int64
	behind    bool // a sync was left out since the last one
	written   int64
	allocated int64
}

// logStep is how much of a log is allocated at a time, in bytes, ahead of what is written. Pebble would allocate a full memtable's for each log, and
// it begins with small memtables and several logs: more than ten times what they hold.
const logStep = 8 << 20

// Preallocate leaves it to Write.
func (f *logFile) Preallocate(_, _ int64) error { return nil }

// Write allocates what it is about to need. That may fail where a file system can't, or has no room: the write itself tells.
func (f *logFile) Write(p []byte) (int, error) {
	for f.allocated < f.written+int64(len(p)) {
		_ = f.File.Preallocate(f.allocated, logStep)
		f.allocated += logStep
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// Sync takes what was written to the disk if somebody waits for that.
func (f *logFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData is Sync without the file's attributes.
func (f *logFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *logFile) sync(run func() error) error {
	if f.waiting.Load() == 0 {
		f.behind = true
		return nil
	}
	f.behind = false
	return run()
}

// Close takes everything to the disk first: later syncs are of the next file.
func (f *logFile) Close() error {
	if f.behind {
		if err := f.File.SyncData(); err != nil {
			f.File.Close()
			return err
		}
	}
	return f.File.Close()
}
