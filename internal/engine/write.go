package engine

import (
	"context"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// Write is one statement: exactly one of Insert, Update and Delete is set.
type Write struct {
	Table  Name // created when missing, by an insert or an upsert, unless Existing
	Insert bson.Document
	Update *UpdateStatement
	Delete *DeleteStatement
	// Statement is the statement's number in its retryable command (stmtId), with WriteOptions.Retry.
	Statement int32
	// Existing: where the table is missing, an insert or an upsert fails with StaleConfig.
	Existing bool
}

// UpdateStatement updates the first document that Query gives, or all with Multi.
type UpdateStatement struct {
	Query  Query
	Update *query.Update
	Multi  bool
	Upsert bool
	// Return asks for the document as it was (ReturnOld) or as it became (ReturnNew), for findAndModify.
	Return Return
}

// DeleteStatement deletes the first document that Query gives, or all with Multi.
type DeleteStatement struct {
	Query  Query
	Multi  bool
	Return Return
}

// Return says which image of a document a write gives back.
type Return uint8

// The images.
const (
	ReturnNone Return = iota
	ReturnOld
	ReturnNew
)

// WriteOptions apply to one call.
type WriteOptions struct {
	Ordered bool // stop at the first error
	Sync    bool // return once it is on disk (j: true, w: majority)
	Retry   *Retry
}

// Retry makes a call safe to send again: the record of each statement is committed in the statement's own batch, and a statement whose
// record is found is not run but answered from the record. A statement that changed nothing leaves no record and is run again. Multi is
// InvalidOptions with it.
type Retry struct {
	Session   []byte // the lsid, and whatever else tells sessions apart
	TxnNumber int64  // a lower one than the session's latest is TransactionTooOld (225)
}

// Result is the outcome of one statement.
type Result struct {
	Err      error // *mongoerr.Error; nil if it went well
	Skipped  bool  // not tried, since an ordered call had stopped before
	Retried  bool  // answered from the record of an earlier call
	Matched  int64
	Modified int64         // also the number deleted or inserted
	Upserted bson.Value    // the _id that an upsert inserted, or Type 0
	Document bson.Document // see Return
}

// Write runs statements in order and returns one Result each. What one statement does to one document is atomic with its index
// entries, counters and retry record; consecutive inserts share one batch. An error in place of results means that nothing was
// acknowledged: a closed store, a full disk (OutOfDiskSpace), a cancelled ctx before anything ran, TransactionTooOld; cancelled
// in between, finished statements keep their results and the rest carry Interrupted.
//
// Inserts take documents as they are: _id must be present (the caller adds one) and be neither array, regex nor undefined.
func (db *DB) Write(ctx context.Context, writes []Write, o WriteOptions) ([]Result, error) {
	if err := db.begin(); err != nil {
		return nil, err
	}
	defer db.end()
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	allowed, commit := db.health.writable, db.commit
	if db.fromReserve(writes) {
		allowed, commit = db.health.reserveUsable, db.commitFromReserve
	}
	if err := allowed(); err != nil {
		return nil, err
	}
	w := writers.Get().(*writer)
	w.begin(ctx, db, writes, o)
	w.commit = commit
	results, err := w.run()
	effect := w.acknowledged()
	w.finish()
	if err != nil {
		return nil, err
	}
	switch {
	case o.Sync || db.options.SyncAlways:
		err = db.sync()
	case effect:
		err = db.flushLog()
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// fromReserve reports whether a call may use the space that others leave free.
func (db *DB) fromReserve(writes []Write) bool {
	if db.options.ReserveDatabase == "" {
		return false
	}
	for i := range writes {
		if writes[i].Table.Database != db.options.ReserveDatabase {
			return false
		}
	}
	return true
}

// writer carries out one Write. Its memory is kept for the next one.
type writer struct {
	ctx     context.Context
	db      *DB
	writes  []Write
	options WriteOptions
	commit  func(*pebble.Batch) error // of the store
	results []Result
	session *session // nil without Retry

	inserts insertRun
	old     []entries // of the document before, an index each
	new     []entries // of the document after
	gone    []keyList // entries of removed documents, an index each
	doc     []byte    // a document under construction
	key     []byte
	held    []latch
	ids     [][]byte
	idBytes []byte
}

// maxKeptBytes is how large a document's buffer may be to be kept.
const maxKeptBytes = 1 << 20

var writers = sync.Pool{New: func() any { return new(writer) }}

func (w *writer) begin(ctx context.Context, db *DB, writes []Write, o WriteOptions) {
	w.ctx, w.db, w.writes, w.options = ctx, db, writes, o
	w.results = make([]Result, len(writes))
}

// finish lets go of everything that belongs to the caller.
func (w *writer) finish() {
	w.ctx, w.db, w.writes, w.results, w.session, w.commit = nil, nil, nil, nil, nil, nil
	w.options = WriteOptions{}
	w.inserts.reset()
	if cap(w.doc) > maxKeptBytes {
		w.doc = nil
	}
	writers.Put(w)
}

// run goes through the statements.
func (w *writer) run() ([]Result, error) {
	if w.options.Retry != nil {
		s, err := w.db.retries.checkOut(w.ctx, w.db, w.options.Retry)
		if err != nil {
			return nil, err
		}
		w.session = s
		defer s.checkIn()
	}
	for i := 0; i < len(w.writes); {
		next, err := w.step(i)
		if err != nil {
			if !w.acknowledged() {
				return nil, err
			}
			w.refuse(next, err)
			return w.results, nil
		}
		if w.options.Ordered && w.failed(i, next) {
			w.skip(next)
			break
		}
		i = next
	}
	return w.results, nil
}

// step runs the i-th statement, or from there on as many inserts as make a batch, and returns the number of the next one. An error concerns the
// whole store, or the call, and all statements from next on.
func (w *writer) step(i int) (next int, err error) {
	if err := interrupted(w.ctx); err != nil {
		return i, err
	}
	if w.writes[i].Insert != nil {
		return w.insertFrom(i)
	}
	if w.session.answer(w.writes[i].Statement, &w.results[i]) {
		return i + 1, nil
	}
	err = w.modify(&w.writes[i], &w.results[i])
	if fatalToCall(err) {
		return i, err
	}
	w.results[i].Err = clientError(err)
	return i + 1, nil
}

// fatalToCall reports whether an error of one statement leaves nothing to try for the next.
func fatalToCall(err error) bool {
	return err != nil && (mongoerr.Is(err, mongoerr.OutOfDiskSpace) || mongoerr.Is(err, mongoerr.InterruptedAtShutdown))
}

// clientError makes err what Result.Err promises.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	return mongoerr.From(err)
}

// failed reports whether one of the statements from i to before next failed.
func (w *writer) failed(i, next int) bool {
	for ; i < next; i++ {
		if w.results[i].Err != nil {
			return true
		}
	}
	return false
}

// acknowledged reports whether some statement has had an effect.
func (w *writer) acknowledged() bool {
	for i := range w.results {
		if r := &w.results[i]; r.Modified > 0 || r.Matched > 0 || r.Retried || r.Upserted.Type != 0 {
			return true
		}
	}
	return false
}

// refuse gives all statements from next on an error.
func (w *writer) refuse(next int, err error) {
	for i := next; i < len(w.results); i++ {
		w.results[i] = Result{Err: clientError(err)}
	}
}

func (w *writer) skip(next int) {
	for i := next; i < len(w.results); i++ {
		w.results[i] = Result{Skipped: true}
	}
}

// count adds what a batch does to a table's counters.
func (t *Table) count(b *pebble.Batch, c counters, scratch []byte) ([]byte, error) {
	if c == (counters{}) {
		return scratch, nil
	}
	scratch = appendCounterKey(scratch[:0], t.id)
	at := len(scratch)
	scratch = c.append(scratch)
	return scratch, b.Merge(scratch[:at], scratch[at:], nil)
}

// counted adds the same to the counters in memory, once the batch is visible.
func (t *Table) counted(c counters) {
	t.documents.Add(c.documents)
	t.bytes.Add(c.bytes)
}
