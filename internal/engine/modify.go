package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// groupDocuments is how many documents a statement on many changes in one batch.
const groupDocuments = 128

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
	if id, ok := c.query.onlyID(); ok {
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

// onlyID returns the _id of a query that can give no other document than that with this _id.
func (q *Query) onlyID() (bson.Value, bool) {
	if q.Filter == nil || q.Hint.Type != 0 || q.Min != nil || q.Max != nil || q.Skip != 0 {
		return bson.Value{}, false
	}
	nodes := []query.Node{q.Filter.Root()}
	if and, ok := any(nodes[0]).(*query.And); ok {
		nodes = and.Of
	}
	for _, n := range nodes {
		if c, ok := any(n).(*query.Compare); ok && c.Op == query.Eq && c.Path.String() == "_id" && checkID(c.Value) == nil {
			return c.Value, true
		}
	}
	return bson.Value{}, false
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
	held := w.db.latches.acquire(w.held)
	defer func() { w.db.latches.release(held) }()
	g := group{w: w, t: t, v: v, c: c, alone: len(keys) == 1, arrays: newArrays(t), b: w.db.pebble.NewBatch()}
	defer g.close()
	for _, k := range keys {
		more, err := g.one(k)
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

// group is one batch of changes.
type group struct {
	w       *writer
	t       *Table
	v       *version
	c       *change
	b       *pebble.Batch
	arrays  *arrays
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
}

// one reads a latched document and changes it in the batch. It reports whether it could be done in this group.
func (g *group) one(key []byte) (done bool, err error) {
	old, closer, err := g.w.db.pebble.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	defer closer.Close()
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
			if err := g.b.Delete(g.w.old[i].key(k), nil); err != nil {
				return fmt.Errorf("delete entry: %w", err)
			}
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

// checkUniques refuses a document one of whose new unique keys is another one's. It reports false when there are new ones but the document is not
// alone in its group.
func (g *group) checkUniques(doc bson.Document) (ok bool, err error) {
	for i, ix := range g.v.indexes {
		if !ix.enforced() {
			continue
		}
		for _, fields := range added(&g.w.old[i], &g.w.new[i]) {
			g.uniques = append(g.uniques, keyLatch(fields))
		}
	}
	if len(g.uniques) == 0 {
		return true, nil
	}
	if !g.alone {
		g.uniques = g.uniques[:0]
		return false, nil
	}
	g.uniques = g.w.db.latches.acquire(g.uniques)
	u := uniqueSearch{db: g.w.db}
	defer u.close()
	for i, ix := range g.v.indexes {
		if !ix.enforced() {
			continue
		}
		for _, fields := range added(&g.w.old[i], &g.w.new[i]) {
			taken, err := u.exists(fields)
			if err != nil {
				return false, err
			}
			if taken {
				return false, g.t.duplicate(ix, fields, doc)
			}
		}
	}
	return true, nil
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

// upsert inserts what an update that found nothing asks for.
func (w *writer) upsert(c *change) error {
	doc, err := c.update.Upsert(nil, newObjectID())
	if err != nil {
		return err
	}
	id, err := checkInsert(doc)
	if err != nil {
		return err
	}
	record := w.session.newRecord()
	result := Result{Upserted: id}
	if c.image == ReturnNew {
		result.Document = doc
	}
	if record != nil {
		record.statement, record.result = c.write.Statement, result
	}
	if err := w.insertOne(c.write.Table, doc, id, record); err != nil {
		return err
	}
	*c.result = result
	return nil
}

// The parts of the _ids of upserts: 4 bytes of seconds, 5 of this process, 3 of a counter
// (https://www.mongodb.com/docs/manual/reference/bson-types/#objectid).
var (
	objectIDProcess = func() (p [5]byte) {
		_, _ = rand.Read(p[:]) // never fails
		return p
	}()
	objectIDCounter atomic.Uint32
)

func newObjectID() (id [12]byte) {
	binary.BigEndian.PutUint32(id[:], uint32(time.Now().Unix()))
	copy(id[4:], objectIDProcess[:])
	n := objectIDCounter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}
