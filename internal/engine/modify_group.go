package engine

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// group is one batch of changes.
type group struct {
	w       *writer
	t       *Table
	v       *version
	c       *change
	b       *pebble.Batch
	arrays  *arrays
	fetch   *fetcher // nil: documents are looked up one by one
	alone   bool
	uniques []latch // taken for new unique keys

	delta    counters
	matched  int64
	modified int64
	image    bson.Document
}

func (g *group) close() {
	g.w.db.latches.release(g.uniques)
	g.b.Close()
	g.fetch.close()
}

// one reads a latched document and changes it in the batch. It reports whether it could be done in this group.
func (g *group) one(key []byte) (done bool, err error) {
	if g.fetch != nil {
		old, err := g.fetch.document(idKey(key))
		if old == nil || err != nil {
			return err == nil, err
		}
		return g.change(key, old)
	}
	old, closer, err := g.w.db.pebble.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	defer closer.Close()
	return g.change(key, old)
}

// change changes a document as it is, if it matches.
func (g *group) change(key []byte, old bson.Document) (done bool, err error) {
	ok, index, err := matchAt(g.c.query.Filter, old)
	if err != nil || !ok {
		return true, err
	}
	if g.c.update == nil {
		return true, g.remove(key, old)
	}
	return g.replace(key, old, index)
}

func matchAt(f *query.Filter, doc bson.Document) (ok bool, index int, err error) {
	if f == nil {
		return true, -1, nil
	}
	return f.MatchAt(doc)
}

func (g *group) remove(key []byte, old bson.Document) error {
	if err := g.generate(&g.w.old, key, old); err != nil {
		return err
	}
	for i := range g.v.indexes {
		for k := range g.w.old[i].len() {
			g.w.gone[i].add(g.w.old[i].key(k))
		}
	}
	if err := g.b.DeleteSized(key, uint32(len(old)), nil); err != nil {
		return fmt.Errorf("delete document: %w", err)
	}
	g.delta.add(counters{documents: -1, bytes: -int64(len(old))})
	g.modified++
	if g.c.image == ReturnOld {
		g.image = bytes.Clone(old)
	}
	return nil
}

// deleteEntries puts the deletions of removed documents' entries into the batch, index by index and each in order: a memtable takes a key close to the one
// before without a search from its top.
func (g *group) deleteEntries() error {
	for i := range g.w.gone {
		for _, key := range g.w.gone[i].inOrder() {
			if err := g.b.Delete(key, nil); err != nil {
				return fmt.Errorf("delete entry: %w", err)
			}
		}
		g.w.gone[i].reset()
	}
	return nil
}

func (g *group) replace(key []byte, old bson.Document, index int) (done bool, err error) {
	out, changed, err := g.c.update.Apply(g.w.doc[:0], old, index)
	if err != nil {
		return false, err
	}
	if !changed {
		g.matched++
		if g.c.image != ReturnNone {
			g.image = bytes.Clone(old)
		}
		return true, nil
	}
	g.w.doc = out
	now := bson.Document(out)
	if err := g.generate(&g.w.old, key, old); err != nil {
		return false, err
	}
	if err := g.generate(&g.w.new, key, now); err != nil {
		return false, err
	}
	if ok, err := g.checkUniques(now); err != nil || !ok {
		return false, err
	}
	if err := g.b.Set(key, now, nil); err != nil {
		return false, fmt.Errorf("update document: %w", err)
	}
	for i, ix := range g.v.indexes {
		if err := g.arrays.met(g.b, ix, g.w.new[i].arrays); err != nil {
			return false, err
		}
		if err := g.moveEntries(&g.w.old[i], &g.w.new[i]); err != nil {
			return false, err
		}
	}
	g.delta.add(counters{bytes: int64(len(now) - len(old))})
	g.matched++
	g.modified++
	switch g.c.image {
	case ReturnOld:
		g.image = bytes.Clone(old)
	case ReturnNew:
		g.image = bytes.Clone(now)
	}
	return true, nil
}

// generate fills list with the entries of doc, an index each.
func (g *group) generate(list *[]entries, key []byte, doc bson.Document) error {
	es := g.w.entriesOf(list, len(g.v.indexes))
	for i, ix := range g.v.indexes {
		if ix.state == indexDropping {
			es[i].reset()
			continue
		}
		if err := ix.generate(&es[i], doc, idKey(key)); err != nil {
			return err
		}
	}
	return nil
}

// added returns the fields of the keys that are in now and not in old.
func added(old, now *entries) (out [][]byte) {
	compareEntries(old, now, func(int) {}, func(i int) { out = append(out, now.fields(i)) })
	return out
}

// compareEntries calls gone for each key that only a has and come for each that only b has, by number.
func compareEntries(a, b *entries, gone, come func(int)) {
	i, j := 0, 0
	for i < a.len() || j < b.len() {
		c := 1
		switch {
		case j == b.len():
			c = -1
		case i < a.len():
			c = bytes.Compare(a.key(i), b.key(j))
		}
		switch {
		case c < 0:
			gone(i)
			i++
		case c > 0:
			come(j)
			j++
		default:
			i, j = i+1, j+1
		}
	}
}

// moveEntries puts the difference of two documents' entries into the batch.
func (g *group) moveEntries(old, now *entries) (err error) {
	compareEntries(old, now, func(i int) {
		err = errors.Join(err, g.b.Delete(old.key(i), nil))
	}, func(i int) {
		err = errors.Join(err, g.b.Set(now.key(i), nil, nil))
	})
	if err != nil {
		return fmt.Errorf("move entry: %w", err)
	}
	return nil
}

// commit makes the group visible and adds it to the statement's result.
func (g *group) commit() (err error) {
	r := g.c.result
	if !g.b.Empty() {
		if err := g.commitBatch(); err != nil {
			return err
		}
	}
	r.Matched += g.matched
	r.Modified += g.modified
	if g.c.image != ReturnNone && g.image != nil {
		r.Document = g.image
	}
	return nil
}

func (g *group) commitBatch() (err error) {
	if err := g.deleteEntries(); err != nil {
		return err
	}
	if g.w.inserts.scratch, err = g.t.count(g.b, g.delta, g.w.inserts.scratch); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	record := g.w.session.newRecord()
	if record != nil {
		record.statement = g.c.write.Statement
		record.result = Result{Matched: g.matched, Modified: g.modified, Document: g.image}
	}
	if err := g.w.session.put(g.b, record); err != nil {
		return err
	}
	if err := g.w.commit(g.b); err != nil {
		return err
	}
	g.w.session.committed(record)
	g.t.counted(g.delta)
	g.arrays.committed()
	return nil
}
