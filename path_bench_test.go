package oxbow

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/command"
)

// The benchmarks here measure the whole way of a command, from its bytes to its reply's, and next to it a bare Pebble with the same keys and
// values: what counts is the ratio of the two within one run. In process means through the command table, plan and executor; the wire is
// a socket on loopback, with messages put together beforehand, so that no driver's work is in the figure.

const pathBatch = 1000

// layouts are the collections that the benchmarks write to.
var layouts = map[string]string{
	"plain": "",
	"time":  "collections: {fla.log: {time: {field: time, unit: s, every: hour}, ahead: 1000}}\n",
	"hash":  "collections: {fla.log: {hash: {field: dev, count: 16}}}\n",
}

func openFor(b *testing.B, layout string) *Gateway {
	b.Helper()
	text := "backends: {local: {embedded: " + filepath.Join(b.TempDir(), "data") + "}}\n" + layouts[layout]
	g, err := Open(context.Background(), Options{Config: []byte(text), Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close(context.Background()) })
	return g
}

func openBare(b *testing.B) *pebble.DB {
	b.Helper()
	db, err := pebble.Open(b.TempDir(), &pebble.Options{
		CacheSize: 512 << 20, MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatNewest, Logger: silent{},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(string, ...any)             {}
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// logLines is one batch of documents of about 200 bytes, an hour of 3,600 documents at a time, beginning now.
func logLines(b *testing.B, from int) []bson.Document {
	docs := make([]bson.Document, pathBatch)
	for i := range docs {
		n := from + i
		raw, err := driver.Marshal(driver.D{
			{Key: "_id", Value: driver.NewObjectID()},
			{Key: "time", Value: time.Now().Unix() + int64(n%3600)},
			{Key: "dev", Value: int32(n * 7919 % 20_000)},
			{Key: "text", Value: "request handled by worker, all replicas answered in time, nothing to report but this line of text, which goes on"},
			{Key: "level", Value: int32(n % 5)},
			{Key: "took", Value: float64(n%1000) / 7},
		})
		if err != nil {
			b.Fatal(err)
		}
		docs[i] = raw
	}
	return docs
}

func marshal(b *testing.B, doc driver.D) bson.Document {
	raw, err := driver.Marshal(doc)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// caller is one client's connection without its socket: as the server does, it has the same request, reply and buffer for command after command.
type caller struct {
	table   *command.Table
	conn    command.Conn
	request command.Request
	reply   command.Reply
	buffer  []byte
}

func newCaller(g *Gateway) *caller {
	return &caller{table: g.table, conn: command.Conn{ID: 1}}
}

// run sends a command through the table. The reply is good until the next one.
func (c *caller) run(b *testing.B, body bson.Document, docs []bson.Document) bson.Document {
	c.request = command.Request{Body: body, Conn: &c.conn}
	if docs != nil {
		c.request.Sequences = []backend.Sequence{{Name: "documents", Documents: docs}}
	}
	c.reply = command.Reply{Elements: c.buffer[:0]}
	c.table.Run(context.Background(), &c.request, &c.reply)
	c.buffer = c.reply.Elements
	doc := c.reply.Document
	if doc == nil {
		doc = c.reply.Elements
	}
	if err := backend.Check(doc); err != nil {
		b.Fatal(err)
	}
	return doc
}

// prepare makes the two secondary indexes.
func prepare(b *testing.B, g *Gateway) {
	index := func(name string, key driver.D) driver.D {
		return driver.D{{Key: "name", Value: name}, {Key: "key", Value: key}}
	}
	newCaller(g).run(b, marshal(b, driver.D{{Key: "createIndexes", Value: "log"}, {Key: "indexes", Value: driver.A{
		index("time_1", driver.D{{Key: "time", Value: 1}}), index("dev_1_time_1", driver.D{{Key: "dev", Value: 1}, {Key: "time", Value: 1}}),
	}}, {Key: "$db", Value: "fla"}}), nil)
}

// comparison adds up the time of either side.
type comparison struct{ ours, bare time.Duration }

func spend(d *time.Duration, work func()) {
	start := time.Now()
	work()
	*d += time.Since(start)
}

func (c comparison) report(b *testing.B, n int) {
	b.ReportMetric(float64(n)/c.ours.Seconds(), "ours/s")
	b.ReportMetric(float64(n)/c.bare.Seconds(), "bare/s")
	b.ReportMetric(c.bare.Seconds()/c.ours.Seconds(), "ratio")
}

// BenchmarkPathInsert inserts batches of 1,000 documents with two secondary indexes.
func BenchmarkPathInsert(b *testing.B) {
	for _, layout := range []string{"plain", "time", "hash"} {
		for _, way := range []string{"process", "wire"} {
			b.Run(layout+"/"+way, func(b *testing.B) { benchInsert(b, layout, way) })
		}
	}
}

func benchInsert(b *testing.B, layout, way string) {
	g, bare := openFor(b, layout), openBare(b)
	prepare(b, g)
	body := marshal(b, driver.D{{Key: "insert", Value: "log"}, {Key: "ordered", Value: false}, {Key: "$db", Value: "fla"}})
	client := newCaller(g)
	send := func(docs []bson.Document) { client.run(b, body, docs) }
	if way == "wire" {
		c := dial(b, g)
		send = func(docs []bson.Document) { c.roundTrip(b, body, docs) }
	}
	var took comparison
	n := 0
	for b.Loop() {
		docs := logLines(b, n)
		keys := keysOf(docs)
		n += len(docs)
		spend(&took.ours, func() { send(docs) })
		spend(&took.bare, func() { setBare(b, bare, docs, keys) })
	}
	took.report(b, n)
}

// keysOf are keys as long as the engine's: of the document and of two index entries.
func keysOf(docs []bson.Document) [][3][]byte {
	keys := make([][3][]byte, len(docs))
	for i, doc := range docs {
		id, _ := bson.Get(doc, "_id")
		dev, _ := bson.Get(doc, "dev")
		at, _ := bson.Get(doc, "time")
		encoded := bson.AppendKey(nil, id, false)
		keys[i] = [3][]byte{
			append([]byte("\x10tbl1\x00\x00"), encoded...),
			append(bson.AppendKey([]byte("\x10tbl1\x00\x01\x01\x00"), at, false), encoded...),
			append(bson.AppendKey(bson.AppendKey([]byte("\x10tbl1\x00\x02\x02\x00"), dev, false), at, false), encoded...),
		}
	}
	return keys
}

func setBare(b *testing.B, db *pebble.DB, docs []bson.Document, keys [][3][]byte) {
	batch := db.NewBatch()
	for i, doc := range docs {
		values := [3][]byte{doc, nil, nil}
		for k, key := range keys[i] {
			if err := batch.Set(key, values[k], nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPathFindByID finds one document of 100,000 by its _id, in process; on the hash layout by the slot's field too.
func BenchmarkPathFindByID(b *testing.B) {
	client, bare := newCaller(openFor(b, "plain")), openBare(b)
	var ids []bson.Value
	var keys [][]byte
	body := marshal(b, driver.D{{Key: "insert", Value: "log"}, {Key: "$db", Value: "fla"}})
	for n := 0; n < 100_000; n += pathBatch {
		docs := logLines(b, n)
		client.run(b, body, docs)
		all := keysOf(docs)
		setBare(b, bare, docs, all)
		for i, doc := range docs {
			id, _ := bson.Get(doc, "_id")
			ids, keys = append(ids, id), append(keys, all[i][0])
		}
	}
	find := marshal(b, driver.D{{Key: "find", Value: "log"}, {Key: "filter", Value: driver.D{{Key: "_id", Value: driver.ObjectID{}}}},
		{Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true}, {Key: "$db", Value: "fla"}})
	filter, _ := bson.Get(find, "filter")
	id, _ := bson.Get(filter.Data, "_id")
	const turn = 100
	var took comparison
	n := 0
	for b.Loop() {
		n += turn
		spend(&took.ours, func() {
			for range turn {
				copy(id.Data, ids[rand.IntN(len(ids))].Data)
				if len(client.run(b, find, nil)) < 200 {
					b.Fatal("not found")
				}
			}
		})
		spend(&took.bare, func() {
			for range turn {
				v, closer, err := bare.Get(keys[rand.IntN(len(keys))])
				if err != nil || len(v) < 150 {
					b.Fatal(err)
				}
				closer.Close()
			}
		})
	}
	took.report(b, n)
}

// socket is a client that speaks OP_MSG and nothing else.
type socket struct {
	net.Conn
	message []byte
}

func dial(b *testing.B, g *Gateway) *socket {
	nc, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	return &socket{Conn: nc}
}

// roundTrip sends a body with a sequence of documents and reads the reply.
func (s *socket) roundTrip(b *testing.B, body bson.Document, docs []bson.Document) {
	m := append(s.message[:0], make([]byte, 20)...)
	m = append(append(m, 0), body...)
	m = append(m, 1)
	at := len(m)
	m = append(append(m, 0, 0, 0, 0), "documents\x00"...)
	for _, doc := range docs {
		m = append(m, doc...)
	}
	binary.LittleEndian.PutUint32(m[at:], uint32(len(m)-at))
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	binary.LittleEndian.PutUint32(m[12:], 2013) // OP_MSG
	s.message = m
	if _, err := s.Write(m); err != nil {
		b.Fatal(err)
	}
	var head [16]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		b.Fatal(err)
	}
	rest := make([]byte, binary.LittleEndian.Uint32(head[:])-16)
	if _, err := io.ReadFull(s, rest); err != nil {
		b.Fatal(err)
	}
	if err := backend.Check(rest[5:]); err != nil {
		b.Fatal(err)
	}
}
