package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// fillBatch puts the documents that may be stored into the batch, with their entries.
func (w *writer) fillBatch(b *pebble.Batch) error {
	r := &w.inserts
	u := uniqueSearch{db: w.db}
	defer u.close()
	for i := range r.items {
		item := &r.items[i]
		err := w.fillItem(b, item, &u)
		if err == nil {
			item.done = true
			continue
		}
		if fatalToCall(err) {
			return err
		}
		item.err = err
		if w.options.Ordered {
			r.stop = true
			break
		}
	}
	return nil
}

func (w *writer) fillItem(b *pebble.Batch, item *insertItem, u *uniqueSearch) error {
	r := &w.inserts
	table := &r.tables[item.table]
	doc, key := item.doc, r.key(item)
	taken := item.exists
	if item.twin && !taken {
		_, taken = r.accepted[string(key)]
	}
	if taken {
		id, _ := bson.Get(doc, "_id")
		return table.t.duplicateID(id)
	}
	indexes := table.v.indexes
	es := w.entriesOf(&w.new, len(indexes))
	for i, ix := range indexes {
		if ix.state == indexDropping {
			es[i].reset()
			continue
		}
		if err := ix.generate(&es[i], doc, idKey(key)); err != nil {
			return err
		}
		if ix.enforced() {
			if err := w.checkNewKeys(u, table.t, ix, &es[i], doc); err != nil {
				return err
			}
		}
	}
	if err := b.Set(key, doc, nil); err != nil {
		return fmt.Errorf("insert document: %w", err)
	}
	for i, ix := range indexes {
		if err := w.addEntries(b, table, ix, &es[i]); err != nil {
			return err
		}
	}
	if item.twin {
		r.accept(key)
	}
	table.delta.add(counters{documents: 1, bytes: int64(len(doc))})
	return nil
}

func (r *insertRun) accept(key []byte) {
	if r.accepted == nil {
		r.accepted = make(map[string]struct{})
	}
	r.accepted[string(key)] = struct{}{}
}

// checkNewKeys refuses a document one of whose unique keys is in the table or earlier in the run.
func (w *writer) checkNewKeys(u *uniqueSearch, t *Table, ix *index, e *entries, doc bson.Document) error {
	for k := range e.len() {
		fields := e.fields(k)
		_, taken := w.inserts.accepted[string(fields)]
		if !taken {
			var err error
			if taken, err = u.exists(fields); err != nil {
				return err
			}
		}
		if taken {
			return t.duplicate(ix, fields, doc)
		}
	}
	return nil
}

func (w *writer) addEntries(b *pebble.Batch, table *runTable, ix *index, e *entries) error {
	if err := table.arrays.met(b, ix, e.arrays); err != nil {
		return err
	}
	for k := range e.len() {
		if err := b.Set(e.key(k), nil, nil); err != nil {
			return fmt.Errorf("insert entry: %w", err)
		}
		if ix.enforced() {
			w.inserts.accept(e.fields(k))
		}
	}
	return nil
}

// commitRun commits the batch with the counters and the retry record, and gives the results.
func (w *writer) commitRun(b *pebble.Batch) (err error) {
	if b.Empty() {
		return nil
	}
	r := &w.inserts
	for i := range r.tables {
		if r.scratch, err = r.tables[i].t.count(b, r.tables[i].delta, r.scratch); err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
	if r.record != nil && r.record.result.Upserted.Type == 0 {
		for i := range r.items {
			if r.items[i].done {
				r.record.inserted(r.items[i].statement)
			}
		}
	}
	if err := w.session.put(b, r.record); err != nil {
		return err
	}
	if err := w.commit(b); err != nil {
		return err
	}
	w.session.committed(r.record)
	for i := range r.tables {
		r.tables[i].t.counted(r.tables[i].delta)
		r.tables[i].arrays.committed()
	}
	return nil
}
