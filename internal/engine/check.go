package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// ValidateResult is what Validate saw.
type ValidateResult struct {
	Documents    int64
	KeysPerIndex map[string]int64
	Errors       []string
}

// maxValidateErrors is how many errors Validate lists.
const maxValidateErrors = 100

// Validate checks indexes against documents and counters against a scan, and returns what it found wrong. It works on a snapshot, so that writers
// go on.
func (t *Table) Validate(ctx context.Context) (ValidateResult, error) {
	if err := t.db.begin(); err != nil {
		return ValidateResult{}, err
	}
	defer t.db.end()
	s, v, err := t.snapshot()
	if err != nil {
		return ValidateResult{}, err
	}
	c := checker{t: t, snapshot: s, indexes: v.ready(), result: ValidateResult{KeysPerIndex: make(map[string]int64)}}
	err = errors.Join(c.run(ctx), s.Close())
	if gone := t.gone(); gone != nil {
		return ValidateResult{}, gone
	}
	return c.result, err
}

// checker is one validation.
type checker struct {
	t        *Table
	snapshot *pebble.Snapshot
	indexes  []*index
	implied  []tally // by index: the entries that the documents imply
	result   ValidateResult
}

// tally tells sets of keys apart without holding them: how many, and the sum of their hashes, which does not depend on the order.
type tally struct {
	keys int64
	sum  uint64
}

func (a *tally) add(key []byte) {
	a.keys++
	a.sum += xxhash.Sum64(key)
}

func (c *checker) report(format string, args ...any) {
	if len(c.result.Errors) < maxValidateErrors {
		c.result.Errors = append(c.result.Errors, fmt.Sprintf(format, args...))
	}
}

func (c *checker) run(ctx context.Context) error {
	if err := c.documents(ctx); err != nil {
		return err
	}
	c.result.KeysPerIndex[idIndexName] = c.result.Documents
	for i, ix := range c.indexes {
		if err := c.index(ctx, ix, c.implied[i]); err != nil {
			return err
		}
	}
	return nil
}

// documents scans the documents, checks them and the counters, and tallies the entries they imply.
func (c *checker) documents(ctx context.Context) error {
	c.implied = make([]tally, len(c.indexes))
	var (
		sum counters
		e   entries
	)
	err := c.scan(ctx, c.t.documentPrefix, c.t.documentEnd, func(key, value []byte) error {
		sum.add(counters{documents: 1, bytes: int64(len(value))})
		if err := bson.Validate(value, bson.MaxDepth+1); err != nil {
			c.report("document with key %x: %s", idKey(key), err)
			return nil
		}
		id, _ := bson.Get(value, "_id")
		if !bytes.Equal(key, appendDocumentKey(nil, c.t.id, id)) {
			c.report("document with key %x has another _id: %s", idKey(key), appendShellValue(nil, id))
		}
		for i, ix := range c.indexes {
			if err := ix.generate(&e, value, idKey(key)); err != nil {
				c.report("index %s: document with _id %s: %s", ix.Name, appendShellValue(nil, id), err)
				continue
			}
			for k := range e.len() {
				c.implied[i].add(e.key(k))
			}
			if e.arrays&^ix.flags.arrays.Load() != 0 {
				c.report("index %s is not marked multikey for the document with _id %s", ix.Name, appendShellValue(nil, id))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.result.Documents = sum.documents
	return c.counters(sum)
}

func (c *checker) counters(sum counters) error {
	var stored counters
	b, closer, err := c.snapshot.Get(appendCounterKey(nil, c.t.id))
	if err == nil {
		stored, err = readCounters(b)
		err = errors.Join(err, closer.Close())
	} else if errors.Is(err, pebble.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	if stored != sum {
		c.report("counters say %d documents of %d bytes, there are %d of %d", stored.documents, stored.bytes, sum.documents, sum.bytes)
	}
	return nil
}

// index compares an index's entries with those implied, and where they differ looks for which.
func (c *checker) index(ctx context.Context, ix *index, implied tally) error {
	var (
		found tally
		last  []byte
	)
	err := c.scan(ctx, ix.prefix, ix.end, func(key, _ []byte) error {
		found.add(key)
		at := splitEntry(key)
		if ix.Unique && last != nil && bytes.Equal(last, key[:at]) {
			c.report("index %s: two entries for unique key %x", ix.Name, key[len(ix.prefix):at])
		}
		last = append(last[:0], key[:at]...)
		return nil
	})
	if err != nil {
		return err
	}
	c.result.KeysPerIndex[ix.Name] = found.keys
	if found == implied {
		return nil
	}
	c.report("index %s has %d entries, its documents imply %d", ix.Name, found.keys, implied.keys)
	return errors.Join(c.missing(ctx, ix), c.surplus(ctx, ix))
}

// missing reports documents that lack an entry.
func (c *checker) missing(ctx context.Context, ix *index) error {
	var e entries
	return c.scan(ctx, c.t.documentPrefix, c.t.documentEnd, func(key, value []byte) error {
		if ix.generate(&e, value, idKey(key)) != nil {
			return nil
		}
		for k := range e.len() {
			if ok, err := c.has(e.key(k)); err != nil {
				return err
			} else if !ok {
				c.report("index %s: no entry for the document with key %x", ix.Name, idKey(key))
			}
		}
		return nil
	})
}

// surplus reports entries that no document implies.
func (c *checker) surplus(ctx context.Context, ix *index) error {
	var e entries
	return c.scan(ctx, ix.prefix, ix.end, func(entry, _ []byte) error {
		id := entry[splitEntry(entry):]
		doc, closer, err := c.snapshot.Get(append(bytes.Clone(c.t.documentPrefix), id...))
		if errors.Is(err, pebble.ErrNotFound) {
			c.report("index %s: entry for no document, key %x", ix.Name, id)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read document: %w", err)
		}
		defer closer.Close()
		if ix.generate(&e, doc, id) == nil {
			for k := range e.len() {
				if bytes.Equal(e.key(k), entry) {
					return nil
				}
			}
		}
		c.report("index %s: entry that its document does not imply, key %x", ix.Name, id)
		return nil
	})
}

func (c *checker) has(key []byte) (bool, error) {
	_, closer, err := c.snapshot.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read entry: %w", err)
	}
	return true, closer.Close()
}

// scan calls visit for each key of a range.
func (c *checker) scan(ctx context.Context, start, end []byte, visit func(key, value []byte) error) error {
	it, err := c.snapshot.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	n := 0
	for it.First(); it.Valid() && err == nil; it.Next() {
		if err = visit(it.Key(), it.Value()); err == nil && n%1024 == 0 {
			err = interrupted(ctx)
		}
		n++
	}
	return errors.Join(err, it.Error(), it.Close())
}
