package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// retries are the sessions whose retryable writes are remembered. The records lie on disk, in numbered slots a session; those of a
// transaction number overwrite those of the one before, so that a session costs one record in the usual case.
type retries struct {
	mu       sync.Mutex
	sessions map[sessionKey]*session
}

// sessionKey is the first half of the SHA-256 of Retry.Session.
type sessionKey = [sessionLen]byte

// session is one session's state. Whoever has it checked out owns it; it is not kept over a sync.
type session struct {
	key   sessionKey
	owner chan struct{} // holds one element while the session is checked out
	gone  bool          // no longer in the map
	used  time.Time     // last checked out

	loaded  bool
	begun   bool              // a call came with txn, or there are records of it
	txn     int64             // the greatest number
	slots   uint32            // records of txn on disk; none as long as its statements changed nothing
	stale   uint32            // slots that earlier numbers have filled
	answers map[int32]*record // records of txn by statement; read when a call comes with a number that is known
	latest  time.Time         // of the records on disk
}

// record is what one batch leaves behind: either inserts, or one statement.
type record struct {
	inserts   []int32 // first and last statement of each run of inserted documents
	statement int32
	result    Result
}

func (r *retries) init() { r.sessions = make(map[sessionKey]*session) }

func keyOfSession(id []byte) (k sessionKey) {
	sum := sha256.Sum256(id)
	copy(k[:], sum[:])
	return k
}

// session returns the session of a key, which the caller does not own yet.
func (r *retries) session(key sessionKey) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[key]
	if !ok {
		s = &session{key: key, owner: make(chan struct{}, 1)}
		r.sessions[key] = s
	}
	return s
}

// own returns a session that the caller alone uses until it checks it in, or the error of a context that ends first.
func (r *retries) own(ctx context.Context, key sessionKey) (*session, error) {
	for {
		s := r.session(key)
		select {
		case s.owner <- struct{}{}:
		case <-ctx.Done():
			return nil, interrupted(ctx)
		}
		if !s.gone {
			return s, nil
		}
		s.checkIn()
	}
}

// checkOut returns the session of a call, once no other call has it, ready for the call's number.
func (r *retries) checkOut(ctx context.Context, db *DB, o *Retry) (*session, error) {
	s, err := r.own(ctx, keyOfSession(o.Session))
	if err != nil {
		return nil, err
	}
	s.used = time.Now()
	if err := s.begin(db, o); err != nil {
		s.checkIn()
		return nil, err
	}
	return s, nil
}

func (s *session) checkIn() { <-s.owner }

func (s *session) begin(db *DB, o *Retry) error {
	if !s.loaded {
		if err := s.load(db); err != nil {
			return err
		}
	}
	switch {
	case s.begun && o.TxnNumber < s.txn:
		return mongoerr.New(mongoerr.TransactionTooOld,
			"Retryable write with txnNumber %d is prohibited on session %s because a newer retryable write with txnNumber %d has already started on this session.",
			o.TxnNumber, hex.EncodeToString(s.key[:]), s.txn)
	case s.begun && o.TxnNumber == s.txn:
		// Without records of its own, those on disk are of an earlier number and answer nothing.
		if s.answers == nil && s.slots > 0 {
			return s.load(db)
		}
	default:
		s.begun, s.txn, s.stale, s.slots, s.answers = true, o.TxnNumber, max(s.stale, s.slots), 0, nil
	}
	return nil
}

// load reads the session's records: those of its greatest number count.
func (s *session) load(db *DB) error {
	prefix := appendRetryKey(nil, s.key, 0)[:retryPrefixLen]
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: appendPrefixEnd(nil, prefix), UseL6Filters: true})
	if err != nil {
		return fmt.Errorf("read retry records: %w", err)
	}
	s.slots, s.stale, s.answers = 0, 0, make(map[int32]*record)
	for ok := it.SeekPrefixGE(prefix); ok && err == nil; ok = it.Next() {
		err = s.read(bytes.Clone(it.Value()))
		s.stale++
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return fmt.Errorf("read retry records: %w", err)
	}
	s.loaded = true
	return nil
}

func (s *session) read(doc bson.Document) error {
	var (
		r   = &record{}
		txn int64
		at  int64
	)
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "txn":
			txn, _ = v.Int64OK()
		case "at":
			at, _ = v.DateTimeOK()
		case "inserts":
			each := bson.Elements(v.Data)
			for each.Next() {
				n, _ := each.Value().Int32OK()
				r.inserts = append(r.inserts, n)
			}
		case "statement":
			r.statement, _ = v.Int32OK()
		case "matched":
			r.result.Matched, _ = v.Int64OK()
		case "modified":
			r.result.Modified, _ = v.Int64OK()
		case "upserted":
			r.result.Upserted = v
		case "document":
			r.result.Document = v.Data
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	if s.slots == 0 || txn > s.txn {
		s.begun, s.txn, s.slots, s.answers = true, txn, 0, make(map[int32]*record)
	}
	if txn == s.txn {
		s.slots++
		s.learn(r)
	}
	if t := time.UnixMilli(at); t.After(s.latest) {
		s.latest = t
	}
	return nil
}

// learn makes a record answer for its statements.
func (s *session) learn(r *record) {
	if r.inserts == nil {
		s.answers[r.statement] = r
		return
	}
	one := &record{result: Result{Modified: 1}}
	for i := 0; i+1 < len(r.inserts); i += 2 {
		for n := r.inserts[i]; n <= r.inserts[i+1]; n++ {
			s.answers[n] = one
		}
	}
}

// answer gives a statement's result from its record, if there is one.
func (s *session) answer(statement int32, to *Result) bool {
	if s == nil {
		return false
	}
	r, ok := s.answers[statement]
	if ok {
		*to = r.result
		to.Retried = true
	}
	return ok
}

// newRecord returns an empty record, or nil without a session; the methods on both take nil for nothing to do.
func (s *session) newRecord() *record {
	if s == nil {
		return nil
	}
	return &record{}
}

func (r *record) inserted(statement int32) {
	if r == nil {
		return
	}
	if n := len(r.inserts); n > 0 && r.inserts[n-1] == statement-1 {
		r.inserts[n-1] = statement
		return
	}
	r.inserts = append(r.inserts, statement, statement)
}

// put adds the record to the batch that it is about.
func (s *session) put(b *pebble.Batch, r *record) error {
	if s == nil {
		return nil
	}
	d := bsoncore.AppendInt64Element(nil, "txn", s.txn)
	d = bsoncore.AppendDateTimeElement(d, "at", s.used.UnixMilli())
	if r.inserts != nil {
		at, list := bsoncore.AppendArrayElementStart(d, "inserts")
		for _, n := range r.inserts {
			list = bsoncore.AppendInt32Element(list, "", n)
		}
		d, _ = bsoncore.AppendArrayEnd(list, at)
	} else {
		d = bsoncore.AppendInt32Element(d, "statement", r.statement)
		d = bsoncore.AppendInt64Element(d, "matched", r.result.Matched)
		d = bsoncore.AppendInt64Element(d, "modified", r.result.Modified)
		if r.result.Upserted.Type != 0 {
			d = bsoncore.AppendValueElement(d, "upserted", r.result.Upserted)
		}
		if r.result.Document != nil {
			d = bsoncore.AppendDocumentElement(d, "document", r.result.Document)
		}
	}
	err := b.Set(appendRetryKey(nil, s.key, s.slots), bsoncore.BuildDocument(nil, d), nil)
	if s.slots == 0 {
		for n := uint32(1); n < s.stale; n++ {
			err = errors.Join(err, b.Delete(appendRetryKey(nil, s.key, n), nil))
		}
	}
	if err != nil {
		return fmt.Errorf("write retry record: %w", err)
	}
	return nil
}

// committed notes that the batch with the record is visible.
func (s *session) committed(r *record) {
	if s == nil {
		return
	}
	if s.slots == 0 {
		s.stale = 0
	}
	s.slots++
	s.latest = s.used
	if s.answers != nil {
		s.learn(r)
	}
}
