package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"github.com/cockroachdb/pebble/v2"
	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// The benchmarks here measure the way from a command's bytes to its reply, next to the same keys and values in a bare Pebble
// with the same sizes: the figure that counts is the ratio of the two within one run.

const benchBatch = 1000

// logLine is a document of about 200 bytes as an operations log has it.
func logLine(i int) driver.D {
	return driver.D{
		{Key: "_id", Value: driver.NewObjectID()},
		{Key: "time", Value: int64(1_700_000_000 + i)},
		{Key: "dev", Value: fmt.Sprintf("dev%05d", i%20_000)},
		{Key: "text", Value: "request handled by worker, all replicas answered in time, nothing to report but this line of text, which goes on"},
		{Key: "level", Value: int32(i % 5)},
		{Key: "took", Value: float64(i%1000) / 7},
	}
}

// logBatch is the documents of one insert command.
func logBatch(b *testing.B, from int) []bson.Document {
	docs := make([]bson.Document, benchBatch)
	for i := range docs {
		raw, err := driver.Marshal(logLine(from + i))
		if err != nil {
			b.Fatal(err)
		}
		docs[i] = raw
	}
	return docs
}

func encoded(tb testing.TB, doc driver.D) bson.Document {
	raw, err := driver.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// benchStore is the configuration of both sides.
func benchStore(b *testing.B) *Backend {
	backend, err := Open(Options{Store: Store{Dir: b.TempDir(), CacheBytes: 256 << 20, MemTableBytes: 64 << 20}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { backend.Close() })
	return backend
}

func barePebble(b *testing.B) *pebble.DB {
	cache := pebble.NewCache(256 << 20)
	defer cache.Unref()
	db, err := pebble.Open(b.TempDir(), &pebble.Options{Cache: cache, MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// sides are the time that each side of a comparison took.
type sides struct{ run, bare time.Duration }

// timed adds the duration of work to d.
func timed(d *time.Duration, work func()) {
	start := time.Now()
	work()
	*d += time.Since(start)
}

// report gives both rates, and the ratio that counts.
func (s sides) report(b *testing.B, operations int, unit string) {
	b.ReportMetric(float64(operations)/s.run.Seconds(), unit+"/s")
	b.ReportMetric(float64(operations)/s.bare.Seconds(), "bare-"+unit+"/s")
	b.ReportMetric(s.bare.Seconds()/s.run.Seconds(), "ratio")
}

// BenchmarkInsert inserts batches of 1,000 documents of about 200 bytes with two secondary indexes, by turns through Run and into a bare
// Pebble.
func BenchmarkInsert(b *testing.B) {
	e, bare := benchStore(b), barePebble(b)
	mustReply(b, e, encoded(b, driver.D{{Key: "createIndexes", Value: "log"}, {Key: "indexes", Value: driver.A{
		driver.D{{Key: "key", Value: driver.D{{Key: "time", Value: 1}}}, {Key: "name", Value: "time_1"}},
		driver.D{{Key: "key", Value: driver.D{{Key: "dev", Value: 1}, {Key: "time", Value: 1}}}, {Key: "name", Value: "dev_1_time_1"}},
	}}, {Key: "$db", Value: "fla"}}))
	body := encoded(b, driver.D{{Key: "insert", Value: "log"}, {Key: "$db", Value: "fla"}})
	var took sides
	from := 0
	for b.Loop() {
		docs := logBatch(b, from)
		keys := bareKeys(docs)
		from += benchBatch
		timed(&took.run, func() {
			req := &backend.Request{Body: body, Sequences: []backend.Sequence{{Name: "documents", Documents: docs}}}
			reply, err := e.Run(context.Background(), req)
			if err != nil || backend.Check(reply) != nil {
				b.Fatal(err, reply)
			}
		})
		timed(&took.bare, func() { insertBare(b, bare, docs, keys) })
	}
	took.report(b, from, "documents")
}

func insertBare(b *testing.B, db *pebble.DB, docs []bson.Document, keys [][3][]byte) {
	batch := db.NewBatch()
	for i, doc := range docs {
		for k, key := range keys[i] {
			var value []byte
			if k == 0 {
				value = doc
			}
			if err := batch.Set(key, value, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		b.Fatal(err)
	}
}

// bareKeys are keys as long as the engine's: table, index and encoded values, and the _id behind index values.
func bareKeys(docs []bson.Document) [][3][]byte {
	keys := make([][3][]byte, len(docs))
	for i, doc := range docs {
		id, _ := bson.Get(doc, "_id")
		dev, _ := bson.Get(doc, "dev")
		at, _ := bson.Get(doc, "time")
		encodedID := bson.AppendKey(nil, id, false)
		keys[i] = [3][]byte{
			append([]byte("t0001d"), encodedID...),
			append(bson.AppendKey([]byte("t0001i01"), at, false), encodedID...),
			append(bson.AppendKey(bson.AppendKey([]byte("t0001i02"), dev, false), at, false), encodedID...),
		}
	}
	return keys
}

// BenchmarkFindByID finds one document of 100,000 by its _id, by turns through Run and as a bare get, a hundred at a time.
func BenchmarkFindByID(b *testing.B) {
	const (
		documents = 100_000
		turn      = 100
	)
	e, bare := benchStore(b), barePebble(b)
	body := encoded(b, driver.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}})
	for at := 0; at < documents; at += benchBatch {
		var docs []bson.Document
		for i := at; i < at+benchBatch; i++ {
			doc := encoded(b, driver.D{{Key: "_id", Value: int64(i)}, {Key: "f", Value: strings.Repeat("x", 150)}, {Key: "n", Value: i}})
			docs = append(docs, doc)
			if err := bare.Set(bareID(uint64(i)), doc, pebble.NoSync); err != nil {
				b.Fatal(err)
			}
		}
		req := &backend.Request{Body: body, Sequences: []backend.Sequence{{Name: "documents", Documents: docs}}}
		if reply, err := e.Run(context.Background(), req); err != nil || backend.Check(reply) != nil {
			b.Fatal(err, reply)
		}
	}
	find := encoded(b, driver.D{
		{Key: "find", Value: "c"}, {Key: "filter", Value: driver.D{{Key: "_id", Value: int64(0)}}}, {Key: "limit", Value: int64(1)},
		{Key: "singleBatch", Value: true}, {Key: "lsid", Value: driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}}}}, {Key: "$db", Value: "d"},
	})
	filter, _ := bson.Get(find, "filter")
	id, _ := bson.Get(filter.Data, "_id")
	req := &backend.Request{Body: find}
	var took sides
	finds := 0
	for b.Loop() {
		finds += turn
		timed(&took.run, func() {
			for range turn {
				binary.LittleEndian.PutUint64(id.Data, rand.Uint64N(documents))
				if reply, err := e.Run(context.Background(), req); err != nil || len(reply) < 150 {
					b.Fatal(err, reply)
				}
			}
		})
		timed(&took.bare, func() {
			for range turn {
				v, closer, err := bare.Get(bareID(rand.Uint64N(documents)))
				if err != nil || len(v) < 150 {
					b.Fatal(err)
				}
				closer.Close()
			}
		})
	}
	took.report(b, finds, "finds")
}

// bareID is the key of a document whose _id is a long.
func bareID(id uint64) []byte {
	return bson.AppendKey([]byte("t0001d"), bson.Value{Type: bson.TypeInt64, Data: binary.LittleEndian.AppendUint64(nil, id)}, false)
}

func mustReply(tb testing.TB, e *Backend, body bson.Document) bson.Document {
	tb.Helper()
	reply, err := e.Run(context.Background(), &backend.Request{Body: body})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}
