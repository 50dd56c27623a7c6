package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// fillDocuments is how many documents an index build latches and writes at a time.
const fillDocuments = 256

// fill writes the entries of all documents into indexes that writers maintain already. It goes through the table a few documents at a time: their
// _ids are latched before they are read, so that an entry it writes is that of the document as it is; and documents that come in between
// bring their own entries.
func (t *Table) fill(ctx context.Context, fresh []*index) error {
	last, err := t.lastDocument() // not to run after writers that append
	if err != nil || last == nil {
		return err
	}
	f := filler{t: t, fresh: fresh, end: append(last, 0)}
	from := t.documentPrefix
	for from != nil {
		if err := interrupted(ctx); err != nil {
			return err
		}
		if from, err = f.step(ctx, from); err != nil {
			return fmt.Errorf("build index: %w", err)
		}
	}
	return nil
}

// filler is the memory of one build.
type filler struct {
	t     *Table
	fresh []*index
	end   []byte // above the last document there was at the start
	keys  [][]byte
	held  []latch
	e     entries
}

// step does the documents from a key on and returns where to go on, or nil at the end.
func (f *filler) step(ctx context.Context, from []byte) (next []byte, err error) {
	v, err := f.t.enter() // a drop of the table waits until the step is through
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if err := f.peek(from); err != nil || len(f.keys) == 0 {
		return nil, err
	}
	f.held = f.held[:0]
	for _, k := range f.keys {
		f.held = append(f.held, idLatch(k))
	}
	held, err := f.t.db.latches.acquire(ctx, f.held)
	if err != nil {
		return nil, err
	}
	defer f.t.db.latches.release(held)
	last := f.keys[len(f.keys)-1]
	if err := f.write(last); err != nil {
		return nil, err
	}
	return append(bytes.Clone(last), 0), nil
}

// peek reads the next keys.
func (f *filler) peek(from []byte) error {
	f.keys = f.keys[:0]
	it, err := f.t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: f.end})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for it.First(); it.Valid() && len(f.keys) < fillDocuments; it.Next() {
		f.keys = append(f.keys, bytes.Clone(it.Key()))
	}
	return errors.Join(it.Error(), it.Close())
}

// write reads the latched documents and commits their entries.
func (f *filler) write(last []byte) error {
	it, err := f.t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: f.keys[0], UpperBound: f.end})
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	b := f.t.db.pebble.NewBatch()
	defer b.Close()
	flags := newArrays(f.t)
	for it.First(); it.Valid() && bytes.Compare(it.Key(), last) <= 0 && err == nil; it.Next() {
		if _, latched := slices.BinarySearchFunc(f.keys, it.Key(), bytes.Compare); latched {
			err = f.put(b, flags, it.Key(), it.Value())
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return err
	}
	if b.Empty() {
		return nil
	}
	if err := f.t.db.commit(b); err != nil {
		return err
	}
	flags.committed()
	return nil
}

func (f *filler) put(b *pebble.Batch, flags *arrays, key []byte, doc bson.Document) error {
	for _, ix := range f.fresh {
		if err := ix.generate(&f.e, doc, idKey(key)); err != nil {
			return err
		}
		if err := flags.met(b, ix, f.e.arrays); err != nil {
			return err
		}
		for i := range f.e.len() {
			if err := b.Set(f.e.key(i), nil, nil); err != nil {
				return fmt.Errorf("write entry: %w", err)
			}
		}
	}
	return nil
}

// checkUnique looks for two entries of an index with the same fields; new ones are refused by writers meanwhile.
func (t *Table) checkUnique(ctx context.Context, ix *index) error {
	it, err := t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: ix.prefix, UpperBound: ix.end})
	if err != nil {
		return fmt.Errorf("check index %s: %w", ix.Name, err)
	}
	var fields []byte
	n := 0
	for it.First(); it.Valid() && err == nil; it.Next() {
		key := it.Key()
		at := splitEntry(key)
		if fields != nil && bytes.Equal(fields, key[:at]) {
			err = t.duplicateAt(ix, key, at)
		}
		fields = append(fields[:0], key[:at]...)
		if n++; n%fillDocuments == 0 && err == nil {
			err = interrupted(ctx)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}
