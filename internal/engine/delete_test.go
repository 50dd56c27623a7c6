package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"oxbow/internal/bson"
)

// TestDeleteMany deletes hundreds of documents whose entries come in no order, some of them several of one index, and leaves no entry behind.
func TestDeleteMany(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("time", 1)), doc("key", doc("dev", -1)), doc("key", doc("tags", 1)), doc("key", doc("mark", 1), "sparse", true))
	rng := rand.New(rand.NewPCG(1, 2))
	var docs []bson.Document
	for i := range 2000 {
		d := []any{"_id", (i * 7919) % 2000, "time", i, "dev", rng.IntN(50), "tags", list(rng.IntN(9), rng.IntN(9), i)}
		if i%3 == 0 {
			d = append(d, "mark", rng.IntN(100))
		}
		docs = append(docs, doc(d...))
	}
	mustInsert(t, db, docs...)
	many := func(s *DeleteStatement) { s.Multi = true }
	if r := one(t, db, deletion(t, doc("time", doc("$lt", 900)), many)); r.Modified != 900 {
		t.Errorf("by time: %+v", r)
	}
	mustBeWhole(t, db, testTable, 1100)
	if r := one(t, db, deletion(t, doc("time", doc("$lt", 1900), "dev", doc("$gte", 0)), many)); r.Modified != 1000 {
		t.Errorf("by time and dev: %+v", r)
	}
	mustBeWhole(t, db, testTable, 100)
	for i, d := range docs[1900:] {
		id, _ := bson.Get(d, "_id")
		wantDoc(t, "what stays", get(t, db, id), docs[1900+i])
	}
}

// TestDeleteManyAgainstUpdates deletes what matches while others change it: what no longer matches when it is its turn stays, and none is deleted twice.
func TestDeleteManyAgainstUpdates(t *testing.T) {
	db := openTest(t)
	mustIndex(t, db, doc("key", doc("flag", 1)))
	const documents = 3000
	var docs []bson.Document
	for i := range documents {
		docs = append(docs, doc("_id", i, "flag", 1))
	}
	mustInsert(t, db, docs...)
	saved := make([]bool, documents)
	var all sync.WaitGroup
	all.Go(func() {
		for i := documents - 1; i >= 0; i -= 3 {
			writes := updateOf(t, doc("_id", i), doc("$set", doc("flag", 2)), nil)
			r, err := db.Write(context.Background(), writes, WriteOptions{})
			if err != nil || r[0].Err != nil {
				t.Error(err, r)
			}
			saved[i] = r[0].Modified == 1
		}
	})
	r := one(t, db, deletion(t, doc("flag", 1), func(s *DeleteStatement) { s.Multi = true }))
	all.Wait()
	left := 0
	for i, s := range saved {
		if s {
			left++
			wantDoc(t, "saved", get(t, db, i), doc("_id", i, "flag", 2))
		}
	}
	if int(r.Modified)+left != documents {
		t.Errorf("%d deleted and %d saved of %d", r.Modified, left, documents)
	}
	mustBeWhole(t, db, testTable, int64(left))
}
