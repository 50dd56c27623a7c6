package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func TestInsertKeepsEntriesAndCounters(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("a", 1)), doc("key", doc("b", -1, "a", 1), "name", "ba"))
	for i := range 10 {
		var docs []bson.Document
		for j := range 100 {
			docs = append(docs, doc("_id", i*100+j, "a", j, "b", fmt.Sprint(j%7), "x", list(1, 2)))
		}
		mustInsert(t, db, docs...)
	}
	v := mustBeWhole(t, db, testTable, 1000)
	if v.KeysPerIndex["a_1"] != 1000 || v.KeysPerIndex["ba"] != 1000 {
		t.Errorf("keys %v", v.KeysPerIndex)
	}
	db = reopen(t, db)
	mustBeWhole(t, db, testTable, 1000)
}

func TestInsertDuplicateID(t *testing.T) {
	for name, ids := range map[string][]int{
		"ascending": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"mixed":     {5, 3, 9, 1, 7, 2, 10, 4, 8, 6},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t)
			mustInsert(t, db, doc("_id", 4, "n", 0), doc("_id", 8.0, "n", 0))
			var docs []bson.Document
			for _, id := range ids {
				docs = append(docs, doc("_id", id))
			}
			docs = append(docs, doc("_id", int64(1)))
			failed := 0
			for i, r := range mustWrite(t, db, inserts(docs...), WriteOptions{}) {
				if r.Err == nil {
					continue
				}
				failed++
				e := wantCode(t, r.Err, mongoerr.DuplicateKey)
				id, _ := bson.Get(docs[i], "_id")
				want := fmt.Sprintf("E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: %s }", appendShellValue(nil, id))
				if e.Message != want {
					t.Errorf("message %q, want %q", e.Message, want)
				}
				if v, _ := bson.Get(e.Info, "keyValue"); string(v.Data) != string(doc("_id", id)) {
					t.Errorf("keyValue %s", v)
				}
			}
			if failed != 3 {
				t.Errorf("%d failed, want 3: 4, 8 and the second 1", failed)
			}
			mustBeWhole(t, db, testTable, 10)
		})
	}
}

func TestInsertOrderedStops(t *testing.T) {
	db := openTest(t)
	rs := mustWrite(t, db, inserts(doc("_id", 1), doc("_id", 2), doc("_id", 1), doc("_id", 3)), WriteOptions{Ordered: true})
	if rs[0].Modified != 1 || rs[1].Modified != 1 || rs[2].Err == nil || !rs[3].Skipped || rs[3].Modified != 0 {
		t.Errorf("%+v", rs)
	}
	mustBeWhole(t, db, testTable, 2)
	rs = mustWrite(t, db, inserts(doc("_id", 5), doc("_id", list(1)), doc("_id", 6)), WriteOptions{Ordered: true})
	wantCode(t, rs[1].Err, mongoerr.InvalidIDField)
	if rs[0].Modified != 1 || !rs[2].Skipped {
		t.Errorf("%+v", rs)
	}
	mustBeWhole(t, db, testTable, 3)
}

// Random inserts with many collisions, of _ids and of a unique key, give what a map gives.
func TestInsertAgainstModel(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("u", 1), "unique", true))
	rng := rand.New(rand.NewPCG(1, 2))
	ids, uniques := map[int]bool{}, map[int]bool{}
	for range 200 {
		var docs []bson.Document
		var want []bool
		for range rng.IntN(20) + 1 {
			id, u := rng.IntN(1500), rng.IntN(3000)
			docs = append(docs, doc("_id", id, "u", u))
			ok := !ids[id] && !uniques[u]
			if ok {
				ids[id], uniques[u] = true, true
			}
			want = append(want, ok)
		}
		for i, r := range mustWrite(t, db, inserts(docs...), WriteOptions{}) {
			if (r.Err == nil) != want[i] {
				t.Fatalf("insert %s: %v, want success %v", docs[i], r.Err, want[i])
			}
		}
	}
	mustBeWhole(t, db, testTable, int64(len(ids)))
}

func TestInsertManyInOneCall(t *testing.T) {
	db := openTest(t)
	var docs []bson.Document
	for i := range 3*maxRunDocuments + 1 {
		docs = append(docs, doc("_id", i))
	}
	docs = append(docs, doc("_id", 17), doc("_id", -1))
	rs := mustWrite(t, db, inserts(docs...), WriteOptions{Ordered: true})
	if rs[len(rs)-2].Err == nil || !rs[len(rs)-1].Skipped {
		t.Errorf("the last two: %+v", rs[len(rs)-2:])
	}
	mustBeWhole(t, db, testTable, 3*maxRunDocuments+1)
}

func TestInsertIntoSeveralTables(t *testing.T) {
	db := openTest(t)
	var writes []Write
	for i := range 100 {
		writes = append(writes, Write{Table: Name{"db", fmt.Sprint("t", i%3)}, Insert: doc("_id", i%50, "i", i)})
	}
	failed := 0
	for _, r := range mustWrite(t, db, writes, WriteOptions{}) {
		if r.Err != nil {
			failed++
		}
	}
	if failed != 0 { // 50 is no multiple of 3: no table gets an _id twice
		t.Errorf("%d failed", failed)
	}
	mustBeWhole(t, db, Name{"db", "t0"}, 34)
	mustBeWhole(t, db, Name{"db", "t1"}, 33)
}

func TestInsertParallelArrays(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("a", 1, "b", 1)))
	rs := mustWrite(t, db, inserts(doc("_id", 1, "a", list(1), "b", list(2)), doc("_id", 2, "a", list(1, 1, 2), "b", 1)), WriteOptions{})
	e := wantCode(t, rs[0].Err, mongoerr.CannotIndexParallelArrays)
	if e.Message != "cannot index parallel arrays [b] [a]" {
		t.Errorf("message %q", e.Message)
	}
	v := mustBeWhole(t, db, testTable, 1)
	if v.KeysPerIndex["a_1_b_1"] != 2 {
		t.Errorf("keys %v", v.KeysPerIndex)
	}
	table, _ := db.Table(testTable)
	if !table.Indexes()[1].Multikey {
		t.Error("index is not multikey")
	}
	db = reopen(t, db)
	table, _ = db.Table(testTable)
	if ix := table.version.Load().indexes[0]; ix.flags.arrays.Load() != 1 {
		t.Errorf("array flags %b after opening again, want 1: a only", ix.flags.arrays.Load())
	}
}

func TestInsertCancelled(t *testing.T) {
	db := openTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := db.Write(ctx, inserts(doc("_id", 1)), WriteOptions{})
	wantCode(t, err, mongoerr.Interrupted)
	if _, ok := db.Table(testTable); ok {
		t.Error("a cancelled insert made the table")
	}
}
