//go:build !cgo

package oxbow

// storesOutsideGo: Pebble's cache and memtables are part of Go's heap.
const storesOutsideGo = false
