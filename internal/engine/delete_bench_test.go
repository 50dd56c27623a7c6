package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oxbow/internal/bson"
)

// BenchmarkDeleteOld deletes old documents by an index on time, a thousand a statement, as jobs do that let them go: off tables on the disk, the
// memtable empty, with an index on time and another on dev.
func BenchmarkDeleteOld(b *testing.B) {
	const documents = 300 * benchBatch
	rng := rand.New(rand.NewPCG(1, 1))
	db, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	specs := []bson.Document{doc("key", doc("at", 1)), doc("key", doc("dev", 1))}
	name := testTable
	fill := func(round int) {
		name.Collection = fmt.Sprintf("%s%d", testTable.Collection, round)
		if _, _, err := db.CreateIndexes(context.Background(), name, specs); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < documents; n += benchBatch {
			var docs []bson.Document
			for i := range benchBatch {
				line := logLine(rng, n+i)
				id, _ := bson.Get(line, "_id")
				docs = append(docs, doc("_id", id, "at", n+i, "dev", rng.IntN(10_000), "line", bson.Value{Type: bson.TypeDocument, Data: line}))
			}
			writes := inserts(docs...)
			for i := range writes {
				writes[i].Table = name
			}
			if _, err := db.Write(context.Background(), writes, WriteOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.pebble.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	var spent time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	left := 0
	for i := range b.N {
		if left == 0 {
			b.StopTimer()
			fill(i)
			left = documents
			b.StartTimer()
		}
		first := documents - left
		filter := mustFilter(b, doc("at", doc("$gte", first, "$lt", first+benchBatch)))
		start := time.Now()
		rs, err := db.Write(context.Background(), []Write{{Table: name, Delete: &DeleteStatement{Query: Query{Filter: filter}, Multi: true}}}, WriteOptions{})
		spent += time.Since(start)
		if err != nil || rs[0].Modified != benchBatch {
			b.Fatal(err, rs)
		}
		left -= benchBatch
	}
	b.ReportMetric(float64(b.N)*benchBatch/spent.Seconds(), "docs/s")
}
