package engine

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// logLine makes a document of 200 bytes as deployment 2 has them, with fields for two indexes.
func logLine(rng *rand.Rand, n int) bson.Document {
	var id [12]byte
	binary.BigEndian.PutUint32(id[:], uint32(1_700_000_000+n/5000))
	binary.BigEndian.PutUint64(id[4:], uint64(n))
	d := doc("_id", bson.Value{Type: bson.TypeObjectID, Data: id[:]}, "time", 1_700_000_000+n/5000, "dev", rng.IntN(10_000), "op", "login", "ok", true)
	return doc("_id", bson.Value{Type: bson.TypeObjectID, Data: id[:]}, "time", 1_700_000_000+n/5000, "dev", rng.IntN(10_000), "op", "login", "ok", true,
		"msg", strings.Repeat("x", max(0, 200-len(d)-10)))
}

const benchBatch = 1000

// BenchmarkInsert compares inserts through the engine with the same keys, values and syncs put into bare Pebble, in one run: the metric of each is
// documents a second, and the engine's over Pebble's is what counts.
func BenchmarkInsert(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	batches := make([][]bson.Document, 200)
	for i := range batches {
		for j := range benchBatch {
			batches[i] = append(batches[i], logLine(rng, i*benchBatch+j))
		}
	}
	specs := []bson.Document{doc("key", doc("time", 1)), doc("key", doc("dev", 1, "time", 1))}
	open := func(b *testing.B) *DB {
		db, err := Open(Options{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := db.CreateIndexes(context.Background(), testTable, specs); err != nil {
			b.Fatal(err)
		}
		return db
	}
	report := func(b *testing.B, start time.Time) {
		b.ReportMetric(float64(b.N)*benchBatch/time.Since(start).Seconds(), "docs/s")
	}
	b.Run("engine", func(b *testing.B) {
		db := open(b)
		defer db.Close()
		writes := make([][]Write, b.N)
		for i := range writes {
			writes[i] = inserts(batches[i%len(batches)]...)
		}
		name := testTable
		b.ReportAllocs()
		b.ResetTimer()
		start := time.Now()
		for i := range b.N {
			if i%len(batches) == 0 && i > 0 { // the same documents again, in another table
				b.StopTimer()
				name.Collection += "x"
				if _, _, err := db.CreateIndexes(context.Background(), name, specs); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			for j := range writes[i] {
				writes[i][j].Table = name
			}
			rs, err := db.Write(context.Background(), writes[i], WriteOptions{Ordered: true})
			if err != nil || rs[benchBatch-1].Modified != 1 {
				b.Fatal(err, rs[benchBatch-1])
			}
		}
		report(b, start)
	})
	b.Run("pebble", func(b *testing.B) {
		db := open(b)
		defer db.Close()
		type pair struct{ key, value []byte }
		var pairs [][]pair
		table, _ := db.Table(testTable)
		var e entries
		for _, docs := range batches {
			var one []pair
			for _, d := range docs {
				id, _ := bson.Get(d, "_id")
				key := appendDocumentKey(nil, 0, id)
				one = append(one, pair{key, d})
				for _, ix := range table.version.Load().indexes {
					if err := ix.generate(&e, d, idKey(key)); err != nil {
						b.Fatal(err)
					}
					one = append(one, pair{append([]byte(nil), e.key(0)...), nil})
				}
			}
			pairs = append(pairs, one)
		}
		b.ReportAllocs()
		b.ResetTimer()
		start := time.Now()
		for i := range b.N {
			batch := db.pebble.NewBatch()
			for _, p := range pairs[i%len(pairs)] {
				binary.BigEndian.PutUint32(p.key[1:], table.id+1+uint32(i/len(pairs))) // another table each round, as above
				if err := batch.Set(p.key, p.value, nil); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Commit(pebble.NoSync); err != nil {
				b.Fatal(err)
			}
			db.dirty.Store(true)
			_ = batch.Close()
		}
		report(b, start)
	})
}
