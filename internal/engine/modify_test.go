package engine

import (
	"math/rand/v2"
	"sync"
	"testing"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

func updateOf(t *testing.T, filter, u bson.Document, change func(*UpdateStatement)) []Write {
	t.Helper()
	f := mustFilter(t, filter)
	parsed, err := query.ParseUpdate(value(u), query.UpdateOptions{Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	s := &UpdateStatement{Query: Query{Filter: f}, Update: parsed}
	if change != nil {
		change(s)
	}
	return []Write{{Table: testTable, Update: s}}
}

func deletion(t *testing.T, filter bson.Document, change func(*DeleteStatement)) []Write {
	t.Helper()
	s := &DeleteStatement{Query: Query{Filter: mustFilter(t, filter)}}
	if change != nil {
		change(s)
	}
	return []Write{{Table: testTable, Delete: s}}
}

func multi(s *UpdateStatement)  { s.Multi = true }
func upsert(s *UpdateStatement) { s.Upsert = true }

// one writes a single statement and returns its result.
func one(t *testing.T, db *DB, writes []Write) Result {
	t.Helper()
	r := mustWrite(t, db, writes, WriteOptions{})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

func get(t *testing.T, db *DB, id any) bson.Document {
	t.Helper()
	table, ok := db.Table(testTable)
	if !ok {
		return nil
	}
	d, found, err := table.Get(nil, value(id))
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	return d
}

func wantDoc(t *testing.T, what string, got, want bson.Document) {
	t.Helper()
	if string(got) != string(want) {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestUpdateAndDelete(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("a", 1)), doc("key", doc("tags", 1, "a", -1)))
	for i := range 10 {
		mustInsert(t, db, doc("_id", i, "a", i%3, "tags", list(i, i+1)))
	}
	if r := one(t, db, updateOf(t, doc("_id", 4), doc("$set", doc("a", 9)), nil)); r.Matched != 1 || r.Modified != 1 {
		t.Errorf("%+v", r)
	}
	wantDoc(t, "by _id", get(t, db, 4), doc("_id", 4, "a", 9, "tags", list(4, 5)))
	if r := one(t, db, updateOf(t, doc("a", 9, "_id", 4), doc("$set", doc("a", 9)), nil)); r.Matched != 1 || r.Modified != 0 {
		t.Errorf("no change: %+v", r)
	}
	if r := one(t, db, updateOf(t, doc("_id", 4, "a", 1), doc("$set", doc("a", 9)), nil)); r.Matched != 0 {
		t.Errorf("_id matches but the rest doesn't: %+v", r)
	}
	if r := one(t, db, updateOf(t, doc("a", 0), doc("$push", doc("tags", 100)), multi)); r.Matched != 4 || r.Modified != 4 {
		t.Errorf("many: %+v", r)
	}
	r := one(t, db, updateOf(t, doc("a", 0), doc("$set", doc("a", 50)), func(s *UpdateStatement) {
		s.Query.Sort = &query.Sort{Keys: []query.SortKey{{Path: bson.ParsePath("_id"), Desc: true}}}
		s.Return = ReturnNew
	}))
	wantDoc(t, "the last by sort", r.Document, doc("_id", 9, "a", 50, "tags", list(9, 10, 100)))
	r = one(t, db, deletion(t, doc("a", 50), func(s *DeleteStatement) { s.Return = ReturnOld }))
	if r.Modified != 1 {
		t.Errorf("delete: %+v", r)
	}
	wantDoc(t, "deleted", r.Document, doc("_id", 9, "a", 50, "tags", list(9, 10, 100)))
	mustBeWhole(t, db, testTable, 9)
	if r := one(t, db, deletion(t, doc("a", doc("$lt", 5)), func(s *DeleteStatement) { s.Multi = true })); r.Modified != 8 {
		t.Errorf("delete many: %+v", r)
	}
	mustBeWhole(t, db, testTable, 1)
	if r := one(t, db, updateOf(t, doc("_id", 1), doc("$set", doc("a", 1)), nil)); r.Matched != 0 || r.Modified != 0 {
		t.Errorf("nothing to update: %+v", r)
	}
	if r := one(t, db, []Write{{Table: Name{"no", "table"}, Delete: &DeleteStatement{Multi: true}}}); r.Modified != 0 {
		t.Errorf("no table: %+v", r)
	}
	if _, ok := db.Table(Name{"no", "table"}); ok {
		t.Error("a delete made a table")
	}
}

// An update that moves documents along the index it scans meets each of them once.
func TestUpdateManyDoesNotMeetItsOwnResults(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("n", 1)))
	var docs []bson.Document
	for i := range 1000 {
		docs = append(docs, doc("_id", i, "n", i))
	}
	mustInsert(t, db, docs...)
	r := one(t, db, updateOf(t, doc("n", doc("$gte", 0)), doc("$inc", doc("n", 700)), func(s *UpdateStatement) {
		s.Multi = true
		s.Query.Hint = value("n_1")
	}))
	if r.Matched != 1000 || r.Modified != 1000 {
		t.Errorf("%+v", r)
	}
	for _, i := range []int{0, 1, 500, 999} {
		wantDoc(t, "moved once", get(t, db, i), doc("_id", i, "n", i+700))
	}
	mustBeWhole(t, db, testTable, 1000)
}

// An update of many under a unique index goes through one by one and stops at the duplicate.
func TestUpdateManyUnique(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("u", 1), "unique", true))
	for i := range 300 {
		mustInsert(t, db, doc("_id", i, "u", i))
	}
	if r := one(t, db, updateOf(t, doc(), doc("$inc", doc("u", 1000)), multi)); r.Modified != 300 {
		t.Errorf("%+v", r)
	}
	mustBeWhole(t, db, testTable, 300)
	r := mustWrite(t, db, updateOf(t, doc(), doc("$set", doc("u", 5)), multi), WriteOptions{})[0]
	e := wantCode(t, r.Err, mongoerr.DuplicateKey)
	if want := "E11000 duplicate key error collection: db.c index: u_1 dup key: { u: 5 }"; e.Message != want {
		t.Errorf("message %q, want %q", e.Message, want)
	}
	mustBeWhole(t, db, testTable, 300)
}

func TestIncrementsAddUp(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("n", 1)), doc("key", doc("k", 1), "unique", true))
	for i := range 4 {
		mustInsert(t, db, doc("_id", i, "n", 0, "k", i))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				filter := doc("_id", (g+i)%4)
				if i%2 == 0 {
					filter = doc("k", (g+i)%4)
				}
				if r := one(t, db, updateOf(t, filter, doc("$inc", doc("n", 1)), nil)); r.Modified != 1 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		wantDoc(t, "sum", get(t, db, i), doc("_id", i, "n", 200, "k", i))
	}
	mustBeWhole(t, db, testTable, 4)
}

// Workers that each take the first job of a queue never take the same, and take all.
func TestQueueOfJobs(t *testing.T) {
	for _, sorted := range []bool{false, true} {
		db := openTest(t)
		mustIndex(t, db, doc("key", doc("state", 1)))
		var docs []bson.Document
		for i := range 200 {
			docs = append(docs, doc("_id", i, "state", "new"))
		}
		mustInsert(t, db, docs...)
		var (
			mu    sync.Mutex
			taken = map[string]int{}
			wg    sync.WaitGroup
		)
		for range 6 {
			wg.Go(func() {
				for {
					r := one(t, db, updateOf(t, doc("state", "new"), doc("$set", doc("state", "taken")), func(s *UpdateStatement) {
						s.Return = ReturnOld
						if sorted {
							s.Query.Sort = &query.Sort{Keys: []query.SortKey{{Path: bson.ParsePath("_id"), Desc: true}}}
						}
					}))
					if r.Document == nil {
						return
					}
					mu.Lock()
					taken[string(r.Document)]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(taken) != 200 {
			t.Errorf("sorted %v: %d jobs taken, want 200", sorted, len(taken))
		}
		for d, n := range taken {
			if n != 1 {
				t.Errorf("%s taken %d times", bson.Document(d), n)
			}
		}
	}
}

func TestUpsert(t *testing.T) {
	db := openTest(t)
	r := one(t, db, updateOf(t, doc("_id", 7, "a", 1), doc("$set", doc("b", 2)), upsert))
	if r.Matched != 0 || bson.Compare(r.Upserted, value(7)) != 0 {
		t.Errorf("%+v", r)
	}
	wantDoc(t, "upserted", get(t, db, 7), doc("_id", 7, "a", 1, "b", 2))
	if r := one(t, db, updateOf(t, doc("_id", 7), doc("$set", doc("b", 3)), upsert)); r.Matched != 1 || r.Upserted.Type != 0 {
		t.Errorf("%+v", r)
	}
	r = one(t, db, updateOf(t, doc("x", 1), doc("$inc", doc("n", 1)), func(s *UpdateStatement) { s.Upsert, s.Return = true, ReturnNew }))
	id, _ := bson.Get(r.Document, "_id")
	if id.Type != bson.TypeObjectID || bson.Compare(id, r.Upserted) != 0 {
		t.Errorf("%+v", r)
	}
	mustBeWhole(t, db, testTable, 2)
}

// Upserts that race for one unique key count together: one inserts, the others update.
func TestUpsertsRace(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("k", 1), "unique", true))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				one(t, db, updateOf(t, doc("k", i), doc("$inc", doc("n", 1)), upsert))
				one(t, db, updateOf(t, doc("_id", i+1000, "k", i+1000), doc("$inc", doc("n", 1)), upsert))
			}
		})
	}
	wg.Wait()
	mustBeWhole(t, db, testTable, 100)
	table, _ := db.Table(testTable)
	n, err := table.Count(t.Context(), Query{Filter: mustFilter(t, doc("n", 8))})
	if err != nil || n != 100 {
		t.Errorf("%d documents have all 8 increments, want 100: %v", n, err)
	}
}

// A random mix of everything from many goroutines, on few documents and unique keys, with an index that comes and goes and a table that is
// dropped now and then: nothing hangs, and in the end all is whole.
func TestEverythingAtOnce(t *testing.T) {
	db := openTest(t)
	spec := []bson.Document{doc("key", doc("u", 1), "unique", true), doc("key", doc("tags", 1))}
	mustIndex(t, db, spec...)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			for range 300 {
				id, u := rng.IntN(40), rng.IntN(60)
				var writes []Write
				switch rng.IntN(6) {
				case 0, 1:
					for range 5 {
						writes = append(writes, inserts(doc("_id", rng.IntN(40), "u", rng.IntN(60), "tags", list(u, id)))...)
					}
				case 2:
					writes = updateOf(t, doc("_id", id), doc("$set", doc("u", u)), upsert)
				case 3:
					writes = updateOf(t, doc("u", u), doc("$inc", doc("u", 1)), nil)
				case 4:
					writes = updateOf(t, doc("tags", id), doc("$push", doc("tags", u)), multi)
				case 5:
					writes = deletion(t, doc("u", doc("$gt", 50)), func(s *DeleteStatement) { s.Multi = rng.IntN(2) == 0 })
				}
				for _, r := range mustWrite(t, db, writes, WriteOptions{}) {
					if r.Err != nil && !mongoerr.Is(r.Err, mongoerr.DuplicateKey) && !mongoerr.Is(r.Err, mongoerr.QueryPlanKilled) {
						t.Error(r.Err)
					}
				}
			}
		})
	}
	for i := range 10 {
		if _, err := db.DropIndexes(testTable, []string{"tags_1"}); err != nil && !mongoerr.Is(err, mongoerr.IndexNotFound) && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			t.Error(err)
		}
		if i%4 == 3 {
			if err := db.DropTable(testTable); err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				t.Error(err)
			}
		}
		if _, _, err := db.CreateIndexes(t.Context(), testTable, spec[1:]); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	table, _ := db.Table(testTable)
	mustBeWhole(t, db, testTable, table.documents.Load())
}
