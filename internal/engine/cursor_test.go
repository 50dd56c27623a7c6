package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// numbered documents: _id i, a i%7, n i.
func numberedTable(t *testing.T, db *DB, n int) *Table {
	var docs []string
	for i := range n {
		docs = append(docs, fmt.Sprintf(`{"_id": %d, "a": %d, "n": %d}`, i, i%7, i))
	}
	return tableOf(t, db, []string{`{"key": {"a": 1}, "name": "a_1"}`, `{"key": {"n": 1}, "name": "n_1"}`}, docs)
}

func update(t *testing.T, db *DB, filter, change string) {
	t.Helper()
	f := filterOf(t, filter)
	u, err := query.ParseUpdate(bson.Value{Type: bson.TypeDocument, Data: docOf(t, change)}, query.UpdateOptions{Filter: f, Multi: true})
	if err != nil {
		t.Fatal(err)
	}
	write(t, db, Write{Table: testName, Update: &UpdateStatement{Query: Query{Filter: f}, Update: u, Multi: true}})
}

func remove(t *testing.T, db *DB, filter string) {
	t.Helper()
	write(t, db, Write{Table: testName, Delete: &DeleteStatement{Query: Query{Filter: filterOf(t, filter)}, Multi: true}})
}

func write(t *testing.T, db *DB, w Write) {
	t.Helper()
	results, err := db.Write(context.Background(), []Write{w}, WriteOptions{})
	if err = errors.Join(err, results[0].Err); err != nil {
		t.Fatal(err)
	}
}

// ids returns the integer _ids of documents, in order.
func ids(docs []bson.Document) []int {
	var out []int
	for _, d := range docs {
		v, _ := bson.Get(d, "_id")
		n, _ := v.AsInt64OK()
		out = append(out, int(n))
	}
	return out
}

// letGo makes the cursor let its snapshot go, as if it had been idle for too long.
func letGo(t *testing.T, c *Cursor) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.x == nil {
		return
	}
	for done := false; !done; {
		var err error
		if done, err = c.x.pause(); err != nil {
			t.Fatal(err)
		}
	}
}

func take(t *testing.T, c *Cursor, n int) []bson.Document {
	t.Helper()
	var out []bson.Document
	for range n {
		doc, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if doc == nil {
			break
		}
		out = append(out, append(bson.Document(nil), doc...))
	}
	return out
}

func openCursor(t *testing.T, table *Table, q Query) *Cursor {
	t.Helper()
	c, err := table.Find(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestSnapshot(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 50)
	for _, filter := range []string{"", `{"n": {"$gte": 0}}`} {
		c := openCursor(t, table, Query{Filter: filterOf(t, filter)})
		got := take(t, c, 3)
		insert(t, db, docOf(t, `{"_id": 1000, "a": 1, "n": 1000}`))
		remove(t, db, `{"_id": 40}`)
		update(t, db, `{"_id": 30}`, `{"$set": {"n": -1}}`)
		got = append(got, drain(t, c)...)
		if len(got) != 50 {
			t.Errorf("%d documents of the 50 at the opening", len(got))
		}
		for i, id := range ids(got) {
			if n, _ := bson.Get(got[i], "n"); id != i || n.Int32() != int32(i) {
				t.Errorf("document %d is %s", i, got[i])
			}
		}
		remove(t, db, `{"_id": 1000}`)
		insert(t, db, docOf(t, `{"_id": 40, "a": 5, "n": 40}`))
		update(t, db, `{"_id": 30}`, `{"$set": {"n": 30}}`)
	}
}

// TestLetGo: a cursor whose snapshot was let go, again and again, while documents are inserted, changed and deleted, gives none twice, and all
// that were there from its beginning to its end and were not moved.
func TestLetGo(t *testing.T) {
	for name, q := range map[string]Query{
		"collection":  {},
		"backward":    {Sort: sortOf(t, `{"_id": -1}`)},
		"index":       {Sort: sortOf(t, `{"n": 1}`)},
		"index back":  {Sort: sortOf(t, `{"n": -1}`)},
		"points":      {Filter: filterOf(t, `{"a": {"$in": [1, 2, 3, 4, 5, 6]}}`)},
		"merge":       {Filter: filterOf(t, `{"$or": [{"a": {"$lt": 3}, "n": {"$gte": 0}}, {"n": {"$gt": 0}}]}`), Sort: sortOf(t, `{"n": 1}`)},
		"alternative": {Filter: filterOf(t, `{"$or": [{"a": {"$lt": 4}}, {"n": {"$gt": 50}}]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			db := memoryDB(t, nil)
			const n = 400
			table := numberedTable(t, db, n)
			want := map[int]bool{}
			for _, id := range ids(all(t, table, q)) {
				want[id] = true
			}
			c := openCursor(t, table, q)
			r := rand.New(rand.NewPCG(7, 7))
			seen := map[int]bool{}
			touched := map[int]bool{}
			for {
				got := take(t, c, 1+r.IntN(20))
				for _, id := range ids(got) {
					if seen[id] {
						t.Fatalf("_id %d came twice", id)
					}
					seen[id] = true
				}
				if len(got) == 0 {
					break
				}
				letGo(t, c)
				id := r.IntN(n)
				touched[id] = true
				switch r.IntN(3) {
				case 0:
					remove(t, db, fmt.Sprintf(`{"_id": %d}`, id))
				case 1:
					update(t, db, fmt.Sprintf(`{"_id": %d}`, id), fmt.Sprintf(`{"$set": {"n": %d, "a": %d}}`, r.IntN(2*n), r.IntN(7)))
				default:
					update(t, db, fmt.Sprintf(`{"_id": %d}`, id), fmt.Sprintf(`{"$set": {"n": [%d, %d]}}`, r.IntN(2*n), r.IntN(2*n)))
				}
			}
			for id := range want {
				if !seen[id] && !touched[id] {
					t.Errorf("_id %d is missing", id)
				}
			}
		})
	}
}

// TestAge: it is the age of the snapshot that makes the store let it go, and never while the cursor is in use or pinned.
func TestAge(t *testing.T) {
	db := memoryDB(t, func(o *Options) { o.SnapshotAge, o.ageInterval = time.Hour, time.Hour })
	table := numberedTable(t, db, 20)
	c := openCursor(t, table, Query{})
	pinned := openCursor(t, table, Query{pinned: true})
	take(t, c, 2)
	take(t, pinned, 2)
	holds := func(c *Cursor) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.x.snapshot != nil
	}
	c.age()
	c.age()
	if !holds(c) {
		t.Error("a young snapshot was let go")
	}
	for _, c := range []*Cursor{c, pinned} {
		c.mu.Lock()
		c.x.opened = c.x.opened.Add(-2 * time.Hour)
		c.busy = true
		c.mu.Unlock()
		c.age()
		if !holds(c) {
			t.Error("the snapshot of a busy cursor was let go")
		}
		c.age()
	}
	if holds(c) {
		t.Error("an old snapshot is still held")
	}
	if !holds(pinned) {
		t.Error("a pinned snapshot was let go")
	}
	if got := drain(t, c); len(got) != 18 {
		t.Errorf("%d documents instead of the 18 left", len(got))
	}
}

// TestAgeInSteps: a cursor that has passed many keys of an index is aged in steps, between which it can be used; then it keeps its snapshot.
func TestAgeInSteps(t *testing.T) {
	db := memoryDB(t, func(o *Options) { o.SnapshotAge, o.ageInterval = time.Hour, time.Hour })
	const n = 3*passStep + 10
	table := numberedTable(t, db, n)
	c := openCursor(t, table, Query{Sort: sortOf(t, `{"n": 1}`)})
	seen := len(take(t, c, 2*passStep+5))
	old := func() *execution {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.x.opened = c.x.opened.Add(-2 * time.Hour)
		return c.x
	}
	x := old()
	if c.age() || !c.age() || x.passing == nil {
		t.Fatal("the first step of an idle cursor is not one of several")
	}
	seen += len(take(t, c, 5))
	if c.age() || x.passing != nil || x.snapshot == nil {
		t.Error("a cursor that was used between two steps is not left alone")
	}
	steps := 1
	for ; c.age(); steps++ {
	}
	if steps != 3 || x.snapshot != nil {
		t.Errorf("let go: %v, in %d steps", x.snapshot == nil, steps)
	}
	insert(t, db, docOf(t, fmt.Sprintf(`{"_id": %d, "a": 1, "n": %d}`, n, n)))
	update(t, db, `{"_id": 0}`, fmt.Sprintf(`{"$set": {"n": %d}}`, n+1))
	if seen += len(drain(t, c)); seen != n+1 {
		t.Errorf("%d documents of %d", seen, n+1)
	}
	if got := db.Stats().Snapshots; got != 0 {
		t.Errorf("%d snapshots left", got)
	}
}

// TestAgeEndsWithCursor: what ends a cursor between two steps of its ageing leaves nothing open.
func TestAgeEndsWithCursor(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *DB, *Cursor){
		"closed":  func(t *testing.T, _ *DB, c *Cursor) { c.Close() },
		"dropped": func(t *testing.T, db *DB, _ *Cursor) { db.DropTable(testName) },
		"read":    func(t *testing.T, _ *DB, c *Cursor) { drain(t, c) },
	} {
		t.Run(name, func(t *testing.T) {
			db := memoryDB(t, func(o *Options) { o.SnapshotAge, o.ageInterval = time.Nanosecond, time.Hour })
			c := openCursor(t, numberedTable(t, db, passStep+20), Query{Sort: sortOf(t, `{"n": 1}`)})
			take(t, c, passStep+10)
			c.age()
			if !c.age() {
				t.Fatal("not in several steps")
			}
			end(t, db, c)
			if got := db.Stats().Snapshots; got != 0 || c.x != nil {
				t.Errorf("%d snapshots left", got)
			}
		})
	}
}

func TestDropUnderCursor(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 300)
	sorted := Query{Sort: sortOf(t, `{"b": 1}`)}
	cursors := map[string]*Cursor{
		"collection": openCursor(t, table, Query{}),
		"index":      openCursor(t, table, Query{Filter: filterOf(t, `{"n": {"$gt": 1}}`)}),
		"sort":       openCursor(t, table, sorted),
		"let go":     openCursor(t, table, Query{}),
	}
	for name, c := range cursors {
		if name != "sort" {
			take(t, c, 5)
		}
	}
	letGo(t, cursors["let go"])
	if err := db.DropTable(testName); err != nil {
		t.Fatal(err)
	}
	for name, c := range cursors {
		if _, err := c.Next(context.Background()); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
			t.Errorf("%s: %v instead of QueryPlanKilled", name, err)
		}
	}
	if _, _, err := table.Get(nil, bson.Value{Type: bson.TypeInt32, Data: []byte{1, 0, 0, 0}}); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
		t.Errorf("Get: %v", err)
	}
	if _, err := table.Count(context.Background(), Query{}); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
		t.Errorf("Count: %v", err)
	}
}

func TestDropIndexUnderCursor(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 300)
	c := openCursor(t, table, Query{Filter: filterOf(t, `{"n": {"$gt": 1}}`)})
	take(t, c, 5)
	letGo(t, c)
	if _, err := db.DropIndexes(testName, []string{"n_1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(context.Background()); !mongoerr.Is(err, mongoerr.QueryPlanKilled) {
		t.Errorf("%v instead of QueryPlanKilled", err)
	}
}

func TestCancel(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	c := openCursor(t, table, Query{Filter: filterOf(t, `{"none": 1}`)})
	cancel()
	if _, err := c.Next(ctx); !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("Next: %v", err)
	}
	if _, err := table.Count(ctx, Query{Filter: filterOf(t, `{"n": {"$gt": 1}}`)}); !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("Count: %v", err)
	}
}

// endsLater is a context that ends after it was asked a number of times.
type endsLater struct {
	context.Context
	left int
}

func (c *endsLater) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A write that is interrupted while it looks for its documents says so, as one does that is interrupted before or after.
func TestWriteInterruptedInScan(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 1000)
	for left := 1; left < 6; left++ {
		w := Write{Table: table.Name(), Delete: &DeleteStatement{Query: Query{Filter: filterOf(t, `{"none": 1}`)}, Multi: true}}
		rs, err := db.Write(&endsLater{t.Context(), left}, []Write{w}, WriteOptions{})
		if err == nil {
			err = rs[0].Err
		}
		if !mongoerr.Is(err, mongoerr.MaxTimeMSExpired) {
			t.Errorf("interrupted at look %d: %v", left, err)
		}
	}
}

func TestCountPastTheLargestLimit(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 10)
	n, err := table.Count(t.Context(), Query{Filter: filterOf(t, `{"_id": {"$gte": 0}}`), Skip: 3, Limit: math.MaxInt64})
	if err != nil || n != 7 {
		t.Errorf("counted %d documents behind the first 3 of 10: %v", n, err)
	}
	docs := all(t, table, Query{Sort: sortOf(t, `{"nothing": 1}`), Skip: 3, Limit: math.MaxInt64})
	if len(docs) != 7 {
		t.Errorf("sorted %d documents behind the first 3 of 10", len(docs))
	}
}

func TestCloseUnderCursor(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 10)
	c := openCursor(t, table, Query{})
	take(t, c, 1)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(context.Background()); !mongoerr.Is(err, mongoerr.InterruptedAtShutdown) {
		t.Errorf("Next: %v", err)
	}
	if _, _, err := table.Get(nil, stringValue("x")); !mongoerr.Is(err, mongoerr.InterruptedAtShutdown) {
		t.Errorf("Get: %v", err)
	}
}

func TestExamined(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 70)
	for _, c := range []struct {
		filter          string
		keys, documents int64
	}{
		{`{"_id": 4}`, 1, 1},
		{`{"_id": 400}`, 1, 0},
		{`{"n": {"$gte": 10, "$lt": 30}}`, 20, 20},
		{`{"a": 3, "b": 1}`, 10, 10},
		{`{"b": 1}`, 0, 70},
	} {
		cursor := openCursor(t, table, Query{Filter: filterOf(t, c.filter)})
		drain(t, cursor)
		keys, documents := cursor.Examined()
		if keys != c.keys || documents != c.documents {
			t.Errorf("%s: %d keys and %d documents examined, not %d and %d", c.filter, keys, documents, c.keys, c.documents)
		}
	}
}
