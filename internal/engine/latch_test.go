package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// count returns how many latches are held.
func (l *latches) count() (held int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		held += len(s.held)
		s.mu.Unlock()
	}
	return held
}

// TestLatchWaitEnds: who waits for a latch stops when its context ends, lets go of what it holds by then, and leaves the others' turns as
// they were.
func TestLatchWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l latches
		l.init()
		held, err := l.acquire(t.Context(), []latch{5})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gaveUp, served := make(chan error), make(chan error)
		go func() {
			_, err := l.acquire(ctx, []latch{9, 5, 3})
			gaveUp <- err
		}()
		synctest.Wait()
		go func() {
			all, err := l.acquire(t.Context(), []latch{5, 9})
			l.release(all)
			served <- err
		}()
		synctest.Wait()
		if err := <-gaveUp; !mongoerr.Is(err, mongoerr.MaxTimeMSExpired) {
			t.Errorf("the wait ended with %v", err)
		}
		if n := l.count(); n != 1 {
			t.Errorf("%d latches are held, 1 was taken", n)
		}
		l.release(held)
		if err := <-served; err != nil {
			t.Errorf("the next in turn: %v", err)
		}
		if n := l.count(); n != 0 {
			t.Errorf("%d latches are left", n)
		}
	})
}

// TestLatchGivenWhileWaitEnds: a latch that is given in the moment in which the wait for it ends is not lost.
func TestLatchGivenWhileWaitEnds(t *testing.T) {
	var l latches
	l.init()
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		held, err := l.acquire(ctx, []latch{7})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if all, err := l.acquire(ctx, []latch{7}); err == nil {
				l.release(all)
			}
		}()
		go cancel()
		l.release(held)
		<-done
	}
	if n := l.count(); n != 0 {
		t.Errorf("%d latches are left", n)
	}
}

// TestWriteWaitEnds: every kind of write that waits for another one's latch ends with its own context, changes nothing and holds nothing.
func TestWriteWaitEnds(t *testing.T) {
	for name, c := range map[string]struct {
		latch  func(*DB) latch
		writes []Write
	}{
		"insert":       {latchOfID, inserts(doc("_id", 1))},
		"update":       {latchOfID, updateOf(t, doc("_id", 1), doc("$set", doc("a", 2)), nil)},
		"update many":  {latchOfID, updateOf(t, doc("u", 1), doc("$set", doc("a", 2)), multi)},
		"delete":       {latchOfID, deletion(t, doc("a", 1), nil)},
		"upsert":       {latchOfUnique, updateOf(t, doc("_id", 7), doc("$set", doc("u", 5)), upsert)},
		"unique":       {latchOfUnique, inserts(doc("_id", 5, "u", 5))},
		"unique moved": {latchOfUnique, updateOf(t, doc("_id", 1), doc("$set", doc("u", 5)), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t)
			mustInsert(t, db, doc("_id", 1, "a", 1, "u", 1))
			mustIndex(t, db, doc("key", doc("u", 1), "name", "u_1", "unique", true))
			held, err := db.latches.acquire(t.Context(), []latch{c.latch(db)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			rs, err := db.Write(ctx, c.writes, WriteOptions{})
			if err == nil {
				err = rs[0].Err
			}
			wantCode(t, err, mongoerr.MaxTimeMSExpired)
			db.latches.release(held)
			if n := db.latches.count(); n != 0 {
				t.Errorf("%d latches are left", n)
			}
			mustBeWhole(t, db, testTable, 1)
			wantDoc(t, "the document", get(t, db, 1), doc("_id", 1, "a", 1, "u", 1))
		})
	}
}

func latchOfID(db *DB) latch {
	table, _ := db.Table(testTable)
	return idLatch(appendDocumentKey(nil, table.id, value(1)))
}

func latchOfUnique(db *DB) latch {
	table, _ := db.Table(testTable)
	var e entries
	ix := table.version.Load().indexes[0]
	if err := ix.generate(&e, doc("_id", 5, "u", 5), bson.AppendKey(nil, value(5), false)); err != nil {
		panic(err)
	}
	return keyLatch(e.fields(0))
}
