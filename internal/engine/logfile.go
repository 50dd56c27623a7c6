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
	waiting *atomic.Int64
	behind  bool // a sync was left out since the last one
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
