package engine

import (
	"fmt"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"
)

// arrays keeps the flags of multikey indexes while one batch is made.
type arrays struct {
	t   *Table
	new []metArrays
}

type metArrays struct {
	ix   *index
	bits uint32
}

func newArrays(t *Table) *arrays { return &arrays{t: t} }

// met notes that fields of an index met arrays in a document of the batch: readers know it before the batch is visible, and the disk with it.
func (a *arrays) met(b *pebble.Batch, ix *index, fields uint32) error {
	fields &^= ix.flags.stored.Load()
	if fields == 0 {
		return nil
	}
	ix.flags.arrays.Or(fields)
	for rest := fields; rest != 0; rest &= rest - 1 {
		if err := b.Set(appendArraysKey(nil, a.t.id, ix.number, bits.TrailingZeros32(rest)), nil, nil); err != nil {
			return fmt.Errorf("write array flag: %w", err)
		}
	}
	a.new = append(a.new, metArrays{ix, fields})
	return nil
}

// committed notes that the batch is in the log.
func (a *arrays) committed() {
	for _, m := range a.new {
		m.ix.flags.stored.Or(m.bits)
	}
}
