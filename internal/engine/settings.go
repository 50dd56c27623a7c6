package engine

import (
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleFormat is the format of Pebble's own files: columnar blocks and excises that don't wait for a flush. The next one, FormatWALSyncChunks, writes
// into the log how far it was synced and takes a torn tail before that for corruption; but the log is synced less often than Pebble
// believes, see logFS, and after a power failure the folder could not be opened.
const pebbleFormat = pebble.FormatColumnarBlocks

// memtables is how many there can be at once: those that wait for their flush before writers have to, and the one being written. Pebble takes their
// memory off its cache's, so they are added to it: blocks keep what Options says.
const memtables = 5

// pebbleOptions sizes Pebble for o. Where nothing is said, Pebble's default is meant.
func pebbleOptions(o Options, lock *pebble.Lock, h *health) *pebble.Options {
	compactions := max(2, runtime.GOMAXPROCS(0)/2)
	p := &pebble.Options{
		FS:                          h.fs,
		Lock:                        lock,
		Comparer:                    comparer,
		Merger:                      merger,
		FormatMajorVersion:          pebbleFormat,
		CacheSize:                   o.CacheBytes + memtables*o.MemTableBytes,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memtables - 1,
		L0CompactionThreshold:       2, // sublevels: few, since reads of fresh data go through each
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               4 * o.MemTableBytes,
		BytesPerSync:                1 << 20, // spread the writing out, or syncs wait for it
		WALBytesPerSync:             1 << 20,
		FlushDelayDeleteRange:       2 * time.Second, // a dropped index frees its space soon
		TargetByteDeletionRate:      512 << 20,
		Logger:                      h,
		EventListener:               h.listener(),
		CompactionConcurrencyRange:  func() (int, int) { return 1, compactions },
	}
	for i := range p.TargetFileSizes {
		p.TargetFileSizes[i] = min(int64(8<<20)<<i, 64<<20)
	}
	for i := range p.Levels {
		p.Levels[i] = pebble.LevelOptions{
			BlockSize:      16 << 10,
			IndexBlockSize: 64 << 10,
			// Also in the bottom level: most look-ups of a key that is about to be inserted find nothing.
			FilterPolicy: bloom.FilterPolicy(10),
		}
	}
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	p.Experimental.EnableColumnarBlocks = func() bool { return true }
	return p
}
