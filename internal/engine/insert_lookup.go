package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// sortKeys puts the items' numbers in order of their keys, and marks keys that occur twice.
func (w *writer) sortKeys() {
	r := &w.inserts
	r.sorted = r.sorted[:0]
	ascending := true
	for i := range r.items {
		r.sorted = append(r.sorted, int32(i))
		if i > 0 && ascending {
			ascending = bytes.Compare(r.key(&r.items[i-1]), r.key(&r.items[i])) < 0
		}
	}
	if ascending {
		return
	}
	slices.SortStableFunc(r.sorted, func(a, b int32) int { return bytes.Compare(r.key(&r.items[a]), r.key(&r.items[b])) })
	for n := 1; n < len(r.sorted); n++ {
		a, b := &r.items[r.sorted[n-1]], &r.items[r.sorted[n]]
		if bytes.Equal(r.key(a), r.key(b)) {
			a.twin, b.twin = true, true
		}
	}
}

// findExisting marks the items whose _id is in the table.
func (w *writer) findExisting() error {
	r := &w.inserts
	for n := 0; n < len(r.sorted); {
		// The keys of one table lie next to each other.
		table := r.items[r.sorted[n]].table
		end := n + 1
		for end < len(r.sorted) && r.items[r.sorted[end]].table == table {
			end++
		}
		if err := w.findIn(r.tables[table].t, r.sorted[n:end]); err != nil {
			return err
		}
		n = end
	}
	return nil
}

// seekLimit is after how many seeks that were worth no more than one key each the ordered search gives way to single look-ups,
// which bloom filters answer.
const seekLimit = 4

// findIn marks those of the numbered items, in key order, that are in t. Keys above everything the table ever held are new; where existing keys are
// far between, one seek decides for all new keys up to the next existing one.
func (w *writer) findIn(t *Table, sorted []int32) (err error) {
	r := &w.inserts
	if r.floor, err = t.raise(r.floor[:0], r.key(&r.items[sorted[len(sorted)-1]])); err != nil {
		return err
	}
	below, _ := slices.BinarySearchFunc(sorted, r.floor, func(n int32, floor []byte) int {
		if bytes.Compare(r.key(&r.items[n]), floor) <= 0 {
			return -1
		}
		return 1
	})
	if sorted = sorted[:below]; len(sorted) == 0 {
		return nil
	}
	it, err := t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: t.documentPrefix, UpperBound: t.documentEnd, UseL6Filters: true})
	if err != nil {
		return fmt.Errorf("look for _ids: %w", err)
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	poor := 0
	for len(sorted) > 0 {
		key := r.key(&r.items[sorted[0]])
		if poor >= seekLimit {
			r.items[sorted[0]].exists = it.SeekPrefixGE(key)
			sorted = sorted[1:]
			continue
		}
		if !it.SeekGE(key) {
			return nil
		}
		passed := 0
		for passed < len(sorted) {
			c := bytes.Compare(r.key(&r.items[sorted[passed]]), it.Key())
			if c > 0 {
				break
			}
			r.items[sorted[passed]].exists = c == 0
			passed++
		}
		sorted = sorted[passed:]
		if passed == 1 {
			poor++
		}
	}
	return nil
}
