package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/mongoerr"
)

func TestRetriedWrites(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Open(testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	retry := func(txn int64) WriteOptions {
		return WriteOptions{Ordered: true, Retry: &Retry{Session: []byte("s"), TxnNumber: txn}}
	}
	again := func(writes []Write, txn int64) []Result {
		t.Helper()
		first := mustWrite(t, db, writes, retry(txn))
		second := mustWrite(t, db, writes, retry(txn))
		if txn%2 == 0 {
			db = reopen(t, db)
			second = mustWrite(t, db, writes, retry(txn))
		}
		for i := range first {
			if !second[i].Retried || first[i].Retried {
				t.Errorf("txn %d, statement %d: not answered from its record: %+v", txn, i, second[i])
			}
			a, b := first[i], second[i]
			if a.Matched != b.Matched || a.Modified != b.Modified || string(a.Document) != string(b.Document) || a.Upserted.String() != b.Upserted.String() {
				t.Errorf("txn %d, statement %d: answered %+v, was %+v", txn, i, b, a)
			}
		}
		return first
	}
	for txn := int64(1); txn <= 12; txn += 4 {
		for n := range int64(2) {
			base := int(txn*100 + n*50)
			again(inserts(doc("_id", base), doc("_id", base+1), doc("_id", base+2)), txn+n)
		}
		u := updateOf(t, doc("_id", 100), doc("$inc", doc("n", 1)), func(s *UpdateStatement) { s.Return = ReturnNew })
		u = append(u, updateOf(t, doc("_id", fmt.Sprint("up", txn)), doc("$set", doc("n", 1)), upsert)...)
		u[1].Statement = 1
		u = append(u, deletion(t, doc("_id", int(txn*100+1)), nil)...)
		u[2].Statement = 2
		again(u, txn+2)
		u[2] = deletion(t, doc("_id", int(txn*100+2)), nil)[0]
		u[1] = updateOf(t, doc("_id", fmt.Sprint("more", txn)), doc("$set", doc("n", 1)), upsert)[0]
		u[1].Statement, u[2].Statement = 1, 2
		again(u, txn+3)
	}
	wantDoc(t, "incremented once a number", get(t, db, 100), doc("_id", 100, "n", 6))
	_, err = db.Write(t.Context(), inserts(doc("_id", "late")), retry(3))
	wantCode(t, err, mongoerr.TransactionTooOld)
	if get(t, db, "late") != nil {
		t.Error("a write of an old number was done")
	}
	r := mustWrite(t, db, updateOf(t, doc(), doc("$set", doc("x", 1)), multi), retry(50))[0]
	wantCode(t, r.Err, mongoerr.InvalidOptions)

	// A retry of a call of which only the first part was done does the rest.
	part := inserts(doc("_id", "p1"), doc("_id", "p2"))
	mustWrite(t, db, part[:1], retry(60))
	rs := mustWrite(t, db, part, retry(60))
	if !rs[0].Retried || rs[1].Retried || rs[1].Modified != 1 {
		t.Errorf("%+v", rs)
	}
}

// What an ordered retried call stored before a document that no table takes is remembered with the rest.
func TestRetriedInsertsBeforeABadOne(t *testing.T) {
	db := openTest(t)
	o := WriteOptions{Ordered: true, Retry: &Retry{Session: []byte("s"), TxnNumber: 1}}
	writes := inserts(doc("_id", 1), doc("_id", 2), doc("_id", list(3)), doc("_id", 4))
	for call := range 2 {
		rs := mustWrite(t, db, writes, o)
		for i, r := range rs[:2] {
			if r.Err != nil || r.Modified != 1 || r.Retried != (call == 1) {
				t.Errorf("call %d, statement %d: %+v", call, i, r)
			}
		}
		wantCode(t, rs[2].Err, mongoerr.InvalidIDField)
		if !rs[3].Skipped {
			t.Errorf("call %d went on after its error: %+v", call, rs[3])
		}
	}
	mustBeWhole(t, db, testTable, 2)
}

// A number whose statements changed nothing leaves no record, and still makes every lower one too old: else a late copy of the call
// before would be applied again.
func TestLateCallAfterOneWithoutEffect(t *testing.T) {
	db := openTest(t)
	retry := func(txn int64) WriteOptions { return WriteOptions{Retry: &Retry{Session: []byte("s"), TxnNumber: txn}} }
	increment := updateOf(t, doc("_id", 1), doc("$inc", doc("n", 1)), nil)
	mustInsert(t, db, doc("_id", 1, "n", 0))
	mustWrite(t, db, increment, retry(5))
	nothing := updateOf(t, doc("_id", "none"), doc("$inc", doc("n", 1)), nil)
	mustWrite(t, db, nothing, retry(6))
	_, err := db.Write(t.Context(), increment, retry(5))
	wantCode(t, err, mongoerr.TransactionTooOld)
	if r := mustWrite(t, db, nothing, retry(6))[0]; r.Retried || r.Err != nil {
		t.Errorf("a statement without effect was answered from a record: %+v", r)
	}
	if r := mustWrite(t, db, increment, retry(6))[0]; r.Retried || r.Modified != 1 {
		t.Errorf("the first effect of a number: %+v", r)
	}
	if r := mustWrite(t, db, increment, retry(6))[0]; !r.Retried {
		t.Errorf("its retry: %+v", r)
	}
	wantDoc(t, "incremented once a number", get(t, db, 1), doc("_id", 1, "n", 2))
}

func TestRetryRecordsExpire(t *testing.T) {
	db := openTest(t)
	for i := range 5 {
		mustWrite(t, db, inserts(doc("_id", i)), WriteOptions{Retry: &Retry{Session: fmt.Append(nil, "s", i%3), TxnNumber: int64(i)}})
	}
	records := func() int { return keysUnder(t, db, []byte{kindRetry}, []byte{kindRetry + 1}) }
	if n := records(); n != 3 {
		t.Errorf("%d records of 3 sessions", n)
	}
	now := time.Now()
	if err := db.expire(now.Add(-time.Minute)); err != nil || records() != 3 {
		t.Errorf("fresh records were forgotten: %v", err)
	}
	db = reopen(t, db)
	mustWrite(t, db, inserts(doc("_id", 10)), WriteOptions{Retry: &Retry{Session: []byte("s0"), TxnNumber: 9}})
	if err := db.expire(now.Add(time.Minute)); err != nil || records() != 0 || len(db.retries.sessions) != 0 {
		t.Errorf("%d records, %d sessions left: %v", records(), len(db.retries.sessions), err)
	}
}

// TestRetryRecordsExpireInSteps: after a start, sessions that stay are not taken into memory for those that go.
func TestRetryRecordsExpireInSteps(t *testing.T) {
	db := openTest(t)
	const sessions = 2*expireRecords + 3
	for i := range sessions {
		mustWrite(t, db, inserts(doc("_id", i)), WriteOptions{Retry: &Retry{Session: fmt.Append(nil, "s", i), TxnNumber: 1}})
	}
	now := time.Now()
	db = reopen(t, db)
	if err := db.expire(now.Add(-time.Hour)); err != nil || len(db.retries.sessions) != 0 {
		t.Errorf("%d sessions in memory after a look at %d that stay: %v", len(db.retries.sessions), sessions, err)
	}
	steps, found := 0, 0
	for from := []byte{kindRetry}; from != nil; steps++ {
		old, next, err := db.oldSessions(from, now.Add(time.Hour))
		if err != nil || len(old) > expireRecords {
			t.Fatalf("a step over %d sessions: %v", len(old), err)
		}
		found += len(old)
		from = next
	}
	if steps != 3 || found != sessions {
		t.Errorf("%d sessions in %d steps, want %d in 3", found, steps, sessions)
	}
	if r := mustWrite(t, db, inserts(doc("_id", 0)), WriteOptions{Retry: &Retry{Session: []byte("s0"), TxnNumber: 1}})[0]; !r.Retried {
		t.Errorf("a retry after the look: %+v", r)
	}
	if err := db.expire(now.Add(time.Hour)); err != nil || len(db.retries.sessions) != 0 {
		t.Errorf("%d sessions left: %v", len(db.retries.sessions), err)
	}
	if n := keysUnder(t, db, []byte{kindRetry}, []byte{kindRetry + 1}); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// TestSessionWaitEnds: a call that waits for another one of its session ends with its own context.
func TestSessionWaitEnds(t *testing.T) {
	db := openTest(t)
	r := &Retry{Session: []byte("s"), TxnNumber: 1}
	s, err := db.retries.checkOut(t.Context(), db, r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = db.Write(ctx, inserts(doc("_id", 1)), WriteOptions{Retry: r})
	wantCode(t, err, mongoerr.MaxTimeMSExpired)
	s.checkIn()
	if r := mustWrite(t, db, inserts(doc("_id", 1)), WriteOptions{Retry: r})[0]; r.Retried || r.Modified != 1 {
		t.Errorf("the call after it: %+v", r)
	}
}
