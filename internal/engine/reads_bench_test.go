package engine

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

const benchDocuments = 200_000

// benchTable is a table of log lines of about 190 bytes with the indexes of an operations log, compacted.
func benchTable(b *testing.B) *Table {
	db := memoryDB(b, func(o *Options) { o.CacheBytes, o.MemTableBytes = 512<<20, 64<<20 })
	table := tableOf(b, db, []string{`{"key": {"time": 1}, "name": "time_1"}`, `{"key": {"dev": 1, "time": 1}, "name": "dev_1_time_1"}`}, nil)
	text := strings.Repeat("x", 110)
	var batch []bson.Document
	for i := range benchDocuments {
		at, d := bsoncore.AppendDocumentStart(nil)
		d = bsoncore.AppendObjectIDElement(d, "_id", benchID(i))
		d = bsoncore.AppendInt32Element(d, "time", int32(i/10))
		d = bsoncore.AppendStringElement(d, "dev", "device"+string(rune('a'+i%26)))
		d = bsoncore.AppendStringElement(d, "text", text)
		d = bsoncore.AppendInt32Element(d, "level", int32(i%7))
		d, _ = bsoncore.AppendDocumentEnd(d, at)
		if batch = append(batch, d); len(batch) == 1000 {
			insert(b, db, batch...)
			batch = batch[:0]
		}
	}
	if err := db.pebble.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := db.pebble.Compact(context.Background(), []byte{0}, []byte{0xff}, true); err != nil {
		b.Fatal(err)
	}
	return table
}

func benchID(i int) (id [12]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(i))
	return id
}

func BenchmarkScan(b *testing.B) {
	table := benchTable(b)
	prefix := appendDocumentPrefix(nil, table.id)
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			it, err := table.db.pebble.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
			if err != nil {
				b.Fatal(err)
			}
			n, found := 0, 0
			for it.First(); it.Valid(); it.Next() {
				n++
				if v, ok := bson.Get(it.Value(), "level"); ok && v.Int32() == 9 {
					found++
				}
			}
			it.Close()
			if n != benchDocuments || found != 0 {
				b.Fatal(n, found)
			}
		}
		perDocument(b)
	})
	for _, c := range []struct {
		name  string
		query Query
	}{
		{"collection", Query{Filter: filterOf(b, `{"level": 9}`)}},
		{"index", Query{Filter: filterOf(b, `{"time": {"$gte": 0}, "level": 9}`)}},
		{"index not in order of _id", Query{Filter: filterOf(b, `{"dev": {"$gte": ""}, "level": 9}`)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := all(b, table, c.query); len(got) != 0 {
					b.Fatal(len(got))
				}
			}
			perDocument(b)
		})
	}
	b.Run("count from keys", func(b *testing.B) {
		b.ReportAllocs()
		q := Query{Filter: filterOf(b, `{"time": {"$gte": 0}}`)}
		for b.Loop() {
			if n, err := table.Count(context.Background(), q); n != benchDocuments || err != nil {
				b.Fatal(n, err)
			}
		}
		perDocument(b)
	})
}

func perDocument(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchDocuments/b.Elapsed().Seconds(), "documents/s")
}

func BenchmarkGet(b *testing.B) {
	table := benchTable(b)
	r := rand.New(rand.NewPCG(1, 2))
	id := func() bson.Value {
		v := benchID(r.IntN(benchDocuments))
		return bson.Value{Type: bson.TypeObjectID, Data: v[:]}
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		var key, doc []byte
		for b.Loop() {
			key = appendDocumentKey(key[:0], table.id, id())
			v, closer, err := table.db.pebble.Get(key)
			if err != nil {
				b.Fatal(err)
			}
			doc = append(doc[:0], v...)
			closer.Close()
		}
	})
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		var doc []byte
		for b.Loop() {
			var ok bool
			var err error
			if doc, ok, err = table.Get(doc[:0], id()); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		filter := filterOf(b, `{"_id": {"$oid": "000000000000002000000000"}}`)
		for b.Loop() {
			c, err := table.Find(context.Background(), Query{Filter: filter})
			if err != nil {
				b.Fatal(err)
			}
			if doc, err := c.Next(context.Background()); doc == nil || err != nil {
				b.Fatal(doc, err)
			}
			c.Close()
		}
	})
	b.Run("find by device, newest 20", func(b *testing.B) {
		b.ReportAllocs()
		q := Query{Filter: filterOf(b, `{"dev": "devicec"}`), Sort: sortOf(b, `{"time": -1}`), Limit: 20}
		for b.Loop() {
			if got := all(b, table, q); len(got) != 20 {
				b.Fatal(len(got))
			}
		}
	})
}
