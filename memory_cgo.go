//go:build cgo

package oxbow

// storesOutsideGo: Pebble's cache and memtables come from C's allocator, which Go's limit does not count.
const storesOutsideGo = true
