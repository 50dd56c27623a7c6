package engine

import (
	"bytes"
	"errors"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// groupDocuments is how many documents a statement on many changes in one batch.
const groupDocuments = 128

// stepDocuments is from how many documents on a group is read with one iterator, which steps from each to the next, and not with a look-up each.
const stepDocuments = 8

// change is an update or a delete under way.
type change struct {
	query  Query
	update *query.Update // nil: delete
	multi  bool
	image  Return
	write  *Write
	result *Result
	lost   bool // a document that the cursor gave no longer matched once it was latched
}

// modify runs one update or delete.
func (w *writer) modify(one *Write, result *Result) error {
	c := change{write: one, result: result}
	upsert := false
	if s := one.Update; s != nil {
		c.query, c.update, c.multi, c.image, upsert = s.Query, s.Update, s.Multi, s.Return, s.Upsert
	} else {
		s := one.Delete
		c.query, c.multi, c.image = s.Query, s.Multi, s.Return
	}
	if c.multi && w.session != nil {
		return mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with multi=true")
	}
	for duplicate := error(nil); ; {
		if err := w.find(&c); err != nil {
			return err
		}
		if result.Matched > 0 || result.Modified > 0 || !upsert {
			return nil
		}
		if duplicate != nil {
			return duplicate
		}
		// Another writer may have inserted what this one is about to: then it is found on the second try.
		if duplicate = w.upsert(&c); !mongoerr.Is(duplicate, mongoerr.DuplicateKey) {
			return duplicate
		}
	}
}

// find looks for the documents of a change and changes them.
func (w *writer) find(c *change) error {
	t, ok := w.db.Table(c.write.Table)
	if !ok {
		return nil
	}
	if id, _, ok := c.query.fixedID(); ok {
		w.key = appendDocumentKey(w.key[:0], t.id, id)
		_, err := w.changeGroup(t, c, [][]byte{w.key})
		return ignoreDropped(err)
	}
	if c.multi {
		return ignoreDropped(w.changeAll(t, c))
	}
	for tries := 0; ; tries++ {
		c.lost = false
		again, err := w.changeFirst(t, c, tries)
		if err != nil || !again {
			return ignoreDropped(err)
		}
		if err := interrupted(w.ctx); err != nil {
			return err
		}
	}
}

// ignoreDropped takes a table that was dropped before the statement found anything as an empty one.
func ignoreDropped(err error) error {
	if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return nil
	}
	return err
}

// changeFirst changes the first document of a query. It reports whether to look again: every document the cursor gave was
// changed or taken away by others between its being found and its being latched.
func (w *writer) changeFirst(t *Table, c *change, tries int) (again bool, err error) {
	q := c.query
	if q.Sort != nil {
		q.Limit = 1 << min(tries, 6) // a sort in memory keeps only these
	}
	cursor, err := t.Find(w.ctx, q)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	for {
		doc, err := cursor.Next(w.ctx)
		if err != nil || doc == nil {
			return c.lost, err
		}
		id, _ := bson.Get(doc, "_id")
		w.key = appendDocumentKey(w.key[:0], t.id, id)
		c.lost = true
		if _, err := w.changeGroup(t, c, [][]byte{w.key}); err != nil {
			return false, err
		}
		if c.result.Matched > 0 || c.result.Modified > 0 {
			return false, nil
		}
	}
}

// changeAll changes all documents of a query, a group at a time, off one snapshot, so that it does not meet its own results.
func (w *writer) changeAll(t *Table, c *change) (err error) {
	q := c.query
	q.pinned = true
	cursor, err := t.Find(w.ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	size := groupDocuments
	for end := false; !end; {
		if end, err = w.readGroup(t, cursor, size); err != nil {
			return err
		}
		slices.SortFunc(w.ids, bytes.Compare)
		for keys := w.ids; len(keys) > 0; {
			group := keys[:min(size, len(keys))]
			done, err := w.changeGroup(t, c, group)
			if err != nil {
				return err
			}
			if done < len(group) {
				size = 1 // unique keys change: see changeGroup
			}
			keys = keys[done:]
		}
	}
	return nil
}

// readGroup reads the keys of the cursor's next documents into w.ids, and reports its end.
func (w *writer) readGroup(t *Table, cursor *Cursor, size int) (end bool, err error) {
	if err := interrupted(w.ctx); err != nil {
		return false, err
	}
	w.ids, w.idBytes = w.ids[:0], w.idBytes[:0]
	for len(w.ids) < size {
		doc, err := cursor.Next(w.ctx)
		if err != nil || doc == nil {
			return true, err
		}
		id, _ := bson.Get(doc, "_id")
		at := len(w.idBytes)
		w.idBytes = appendDocumentKey(w.idBytes, t.id, id)
		w.ids = append(w.ids, w.idBytes[at:len(w.idBytes):len(w.idBytes)])
	}
	return false, nil
}

// changeGroup changes the documents with the given keys, in ascending order, as far as they still match, in one batch, and
// returns how many it went through. Where one gets a new unique key it stops before it: the latch of such a key may only be
// taken after that of the only _id, or writers could wait for each other in a circle.
func (w *writer) changeGroup(t *Table, c *change, keys [][]byte) (done int, err error) {
	v, err := t.enter()
	if err != nil {
		return 0, err
	}
	defer v.leave()
	w.held = w.held[:0]
	for _, k := range keys {
		w.held = append(w.held, idLatch(k))
	}
	held, err := w.db.latches.acquire(w.ctx, w.held)
	if err != nil {
		return 0, err
	}
	defer w.db.latches.release(held)
	g := group{w: w, t: t, v: v, c: c, alone: len(keys) == 1, arrays: newArrays(t), b: w.db.pebble.NewBatch()}
	defer g.close()
	w.prepareGone(len(v.indexes))
	if len(keys) >= stepDocuments {
		if g.fetch, err = newFetcher(t.documentPrefix, w.db.pebble); err != nil {
			return 0, err
		}
	}
	for _, k := range keys {
		more, err := false, interrupted(w.ctx) // a filter may take long over each
		if err == nil {
			more, err = g.one(k)
		}
		if err != nil {
			return done, errors.Join(g.commit(), err) // what the statement changed before stays changed
		}
		if !more {
			break
		}
		done++
	}
	return done, g.commit()
}
