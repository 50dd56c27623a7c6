package engine

import (
	"sync/atomic"

	"oxbow/internal/query"
)

// index is one index of a table in memory. All but the atomics is immutable; a change makes another one, which shares flags.
type index struct {
	Index                 // Multikey is not kept up to date here: see arrays
	number  uint16        // part of the table's key space
	state   indexState    // what writers and readers must do with it
	prefix  []byte        // of its entries
	end     []byte        // least key above its entries
	partial *query.Filter // of Index.Partial, or nil
	flags   *indexFlags
}

// indexFlags change while an index is in use.
type indexFlags struct {
	// arrays has bit i set once some document has had an array along the path of field i. It is set before the first such entry
	// becomes visible, so it must be read after the snapshot it is used with was taken.
	arrays atomic.Uint32
	// stored are those bits of arrays that are known to be in the log: until then each batch with such an entry brings the bit along.
	stored atomic.Uint32
	// dropped is set before the entries go; a reader that moves to a newer snapshot must look.
	dropped atomic.Bool
}

// indexState is where an index stands in its life. The numbers are on disk.
type indexState uint8

const (
	indexReady    indexState = 0 // readers use it
	indexBuilding indexState = 1 // writers maintain it, duplicates are let through
	indexChecking indexState = 2 // all entries are there; writers refuse duplicates, those from before are being looked for
	indexDropping indexState = 3 // nobody uses it; its entries are about to go
)

// multikey reports whether some document has an array under one of the index's paths.
func (ix *index) multikey() bool { return ix.flags.arrays.Load() != 0 }

// enforced reports whether writers must refuse duplicates.
func (ix *index) enforced() bool { return ix.Unique && ix.state != indexBuilding }
