package engine

import (
	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// A batch of inserts takes so many documents and about so many bytes of them. Pebble handles batches of more than half a memtable apart, and slowly.
const (
	maxRunDocuments = 4096
	maxRunBytes     = 4 << 20
)

// insertRun is one batch of inserts.
type insertRun struct {
	items    []insertItem
	tables   []runTable
	keys     []byte // the document keys of items, one after another
	sorted   []int32
	floor    []byte
	scratch  []byte
	record   *record
	accepted map[string]struct{} // document keys that occur twice in the run, and all unique keys, as far as they are taken
	stop     bool                // an ordered run met an error; what came before is still committed
}

// insertItem is one document of a run.
type insertItem struct {
	write      int // number of the statement
	statement  int32
	doc        bson.Document
	err        error
	table      int // number in tables
	start, end int // of the document's key in keys
	twin       bool
	exists     bool // the _id is taken
	done       bool // goes into the batch
}

// runTable is one table of a run.
type runTable struct {
	t       *Table
	v       *version
	delta   counters
	arrays  *arrays
	uniques []*index
}

// reset empties the run. What it pointed to is let go of: a shorter run than this one would not overwrite it.
func (r *insertRun) reset() {
	clear(r.tables)
	clear(r.items)
	r.items, r.tables, r.keys, r.stop = r.items[:0], r.tables[:0], r.keys[:0], false
	r.record = nil
	clear(r.accepted)
}

func (r *insertRun) key(i *insertItem) []byte { return r.keys[i.start:i.end] }

// insertFrom inserts the documents of statement i and of the inserts right behind it, as one batch, and returns the number of the next statement.
func (w *writer) insertFrom(i int) (next int, err error) {
	r := &w.inserts
	for {
		r.reset()
		if next, err = w.collect(i); err != nil {
			return i, err
		}
		if len(r.items) == 0 {
			return next, nil
		}
		if !r.enter() {
			continue // a table was dropped since it was looked up: it is made again
		}
		err = w.insertEntered()
		r.leave()
		if err != nil {
			return i, err
		}
		return w.report(i, next), nil
	}
}

// report gives the run's results and returns the number of the next statement: the one behind the first that failed, if the call is ordered.
func (w *writer) report(i, next int) int {
	r := &w.inserts
	for n := range r.items {
		item := &r.items[n]
		w.results[item.write].Err = clientError(item.err)
		if item.done {
			w.results[item.write].Modified = 1
		}
	}
	for ; r.stop && i < next; i++ {
		if w.results[i].Err != nil {
			return i + 1
		}
	}
	return next
}

// insertOne inserts one document, with the retry record of the statement that asks for it.
func (w *writer) insertOne(to *Write, doc bson.Document, id bson.Value, record *record) error {
	r := &w.inserts
	for {
		r.reset()
		if err := w.addItem(to, doc, id, 0); err != nil {
			return err
		}
		r.record = record
		if !r.enter() {
			continue
		}
		err := w.insertEntered()
		r.leave()
		if err != nil {
			return err
		}
		return r.items[0].err
	}
}

// collect takes statements into the run: what the record of a retried call answers, or what no table would take, never gets there.
func (w *writer) collect(i int) (next int, err error) {
	r := &w.inserts
	r.record = w.session.newRecord()
	size := 0
	for ; i < len(w.writes) && len(r.items) < maxRunDocuments && size < maxRunBytes; i++ {
		one := &w.writes[i]
		if one.Insert == nil {
			break
		}
		w.results[i] = Result{}
		if w.session.answer(one.Statement, &w.results[i]) {
			continue
		}
		id, err := checkInsert(one.Insert)
		if err == nil {
			err = w.addItem(one, one.Insert, id, i)
		}
		if err != nil {
			if fatalToCall(err) {
				return i, err
			}
			w.results[i].Err = clientError(err)
			if w.options.Ordered {
				r.stop = true
				return i + 1, nil
			}
			continue
		}
		size += len(one.Insert)
	}
	return i, nil
}

// checkInsert returns the _id of a document that may be stored.
func checkInsert(doc bson.Document) (bson.Value, error) {
	if len(doc) > bson.MaxDocumentSize {
		return bson.Value{}, mongoerr.New(mongoerr.BadValue, "object to insert too large. size in bytes: %d, max size: %d", len(doc), bson.MaxDocumentSize)
	}
	id, ok := bson.Get(doc, "_id")
	if !ok {
		return id, mongoerr.New(mongoerr.BadValue, "document has no _id")
	}
	return id, query.CheckID(id)
}

// addItem takes a document into the run; to says where it goes, write is the number of the result that it gets.
func (w *writer) addItem(to *Write, doc bson.Document, id bson.Value, write int) error {
	r := &w.inserts
	table, err := w.runTable(to)
	if err != nil {
		return err
	}
	start := len(r.keys)
	r.keys = bson.AppendKey(append(r.keys, r.tables[table].t.documentPrefix...), id, false)
	r.items = append(r.items, insertItem{write: write, statement: to.Statement, doc: doc, table: table, start: start, end: len(r.keys)})
	return nil
}

// runTable returns the number of a statement's table in the run, made if it is missing.
func (w *writer) runTable(to *Write) (int, error) {
	r := &w.inserts
	for i := len(r.tables) - 1; i >= 0; i-- {
		if r.tables[i].t.Name() == to.Table {
			return i, nil
		}
	}
	t, err := w.db.ensure(to)
	if err != nil {
		return 0, err
	}
	r.tables = append(r.tables, runTable{t: t})
	return len(r.tables) - 1, nil
}

// ensure returns a statement's table, made if it is missing and may be.
func (db *DB) ensure(to *Write) (*Table, error) {
	if t, ok := db.Table(to.Table); ok {
		return t, nil
	}
	if to.Existing {
		return nil, mongoerr.New(mongoerr.StaleConfig, "collection %s is not there any more", to.Table)
	}
	t, _, err := db.createTable(to.Table, nil, nil)
	return t, err
}

// enter pins the versions of the run's tables, of all or of none.
func (r *insertRun) enter() bool {
	for i := range r.tables {
		one := &r.tables[i]
		v, err := one.t.enter()
		if err != nil {
			r.tables = r.tables[:i]
			r.leave()
			return false
		}
		one.v, one.arrays = v, newArrays(one.t)
		one.uniques = one.uniques[:0]
		for _, ix := range v.indexes {
			if ix.enforced() {
				one.uniques = append(one.uniques, ix)
			}
		}
	}
	return true
}

func (r *insertRun) leave() {
	for i := range r.tables {
		r.tables[i].v.leave()
	}
}

// insertEntered latches, checks and commits the run.
func (w *writer) insertEntered() error {
	r := &w.inserts
	w.sortKeys()
	w.held = w.held[:0]
	for i := range r.items {
		w.held = append(w.held, idLatch(r.key(&r.items[i])))
		if err := w.latchUniques(&r.items[i]); err != nil {
			return err
		}
	}
	held, err := w.db.latches.acquire(w.ctx, w.held)
	if err != nil {
		return err
	}
	defer w.db.latches.release(held)
	if err := w.findExisting(); err != nil {
		return err
	}
	b := w.db.pebble.NewBatch(pebble.WithInitialSizeBytes(64<<10), pebble.WithMaxRetainedSizeBytes(2*maxRunBytes))
	defer b.Close()
	if err := w.fillBatch(b); err != nil {
		return err
	}
	return w.commitRun(b)
}

// latchUniques adds the latches of an item's unique keys. A document without keys because of an error gets its error later.
func (w *writer) latchUniques(item *insertItem) error {
	r := &w.inserts
	for _, ix := range r.tables[item.table].uniques {
		e := w.entriesOf(&w.new, 1)
		if ix.generate(&e[0], item.doc, idKey(r.key(item))) != nil {
			continue
		}
		for k := range e[0].len() {
			w.held = append(w.held, keyLatch(e[0].fields(k)))
		}
	}
	return nil
}

// entriesOf returns n entries of a list that is kept.
func (w *writer) entriesOf(list *[]entries, n int) []entries {
	for len(*list) < n {
		*list = append(*list, entries{})
	}
	return (*list)[:n]
}
