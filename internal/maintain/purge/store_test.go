package purge_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
)

// now is when the tests' jobs run.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

// free is a pace without limits.
type free struct{}

func (free) Wait(ctx context.Context, _ int, _ int64) error { return ctx.Err() }
func (free) Share() float64                                 { return 1 }

// logs is the namespace of most tests.
var logs = backend.Namespace{Database: "fla", Collection: "log"}

// store is a collection on an embedded engine in memory.
type store struct {
	backend.Backend
	ns backend.Namespace
}

func openStore(t testing.TB) store {
	t.Helper()
	b, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "store", FS: vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store{b, logs}
}

// command runs a command given in Extended JSON.
func (s store) command(t testing.TB, text string) bson.Document {
	t.Helper()
	return s.run(t, bsontest.Doc(t, text))
}

func (s store) run(t testing.TB, body bson.Document, sequences ...backend.Sequence) bson.Document {
	t.Helper()
	if _, ok := bson.Get(body, "$db"); !ok {
		body, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendStringElement(slices.Clone(body[:len(body)-1]), "$db", s.ns.Database), 0)
	}
	reply, err := s.Run(context.Background(), &backend.Request{Body: body, Sequences: sequences})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return reply
}

// index makes an index on fields.
func (s store) index(t testing.TB, keys string) {
	t.Helper()
	s.command(t, fmt.Sprintf(`{"createIndexes": %q, "indexes": [{"key": %s, "name": "i"}]}`, s.ns.Collection, keys))
}

// insert inserts documents.
func (s store) insert(t testing.TB, docs ...bson.Document) {
	t.Helper()
	for chunk := range slices.Chunk(docs, 1000) {
		reply := s.run(t, bsontest.Doc(t, fmt.Sprintf(`{"insert": %q}`, s.ns.Collection)), backend.Sequence{Name: "documents", Documents: chunk})
		w, err := backend.ParseWriteReply(reply)
		if err == nil {
			err = w.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// all are all documents, by _id.
func (s store) all(t testing.TB) []bson.Document {
	t.Helper()
	var all []bson.Document
	reply := s.command(t, fmt.Sprintf(`{"find": %q, "sort": {"_id": 1}, "batchSize": 1000}`, s.ns.Collection))
	for {
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			t.Fatal(err)
		}
		for it := bson.Elements(c.Batch); it.Next(); {
			all = append(all, slices.Clone(bson.Document(it.Value().Data)))
		}
		if c.ID == 0 {
			return all
		}
		reply = s.command(t, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": %q, "batchSize": 1000}`, c.ID, s.ns.Collection))
	}
}

// options are those of a job on the store.
func (s store) options(strategy purge.Strategy, p purge.Predicate) purge.Options {
	return purge.Options{Strategy: strategy, Predicate: p, Targets: purge.At(s, s.ns), Clock: clock}
}

// finish runs a job to its end and returns all it did together.
func finish(ctx context.Context, o purge.Options) (maintain.Outcome, error) {
	job, err := purge.New(o)
	if err != nil {
		return maintain.Outcome{}, err
	}
	var sum maintain.Outcome
	for range 100_000 {
		out, err := job.Step(ctx, sum.Checkpoint, free{})
		if err != nil {
			return sum, err
		}
		sum.Checkpoint, sum.Remaining = out.Checkpoint, out.Remaining
		sum.Documents += out.Documents
		sum.Bytes += out.Bytes
		sum.Skipped = append(sum.Skipped, out.Skipped...)
		if out.Done {
			return sum, nil
		}
	}
	return sum, fmt.Errorf("%s is not done after 100,000 steps", o.Strategy)
}

// wantSame compares documents byte by byte.
func wantSame(t failer, got, want []bson.Document) {
	t.Helper()
	if slices.EqualFunc(got, want, func(a, b bson.Document) bool { return bytes.Equal(a, b) }) {
		return
	}
	has := func(list []bson.Document, d bson.Document) bool {
		return slices.ContainsFunc(list, func(o bson.Document) bool { return bytes.Equal(o, d) })
	}
	for _, d := range got {
		if !has(want, d) {
			t.Errorf("is there and should not be: %s", d)
		}
	}
	for _, d := range want {
		if !has(got, d) {
			t.Errorf("is gone and should not be: %s", d)
		}
	}
	if !t.Failed() {
		t.Errorf("%d documents, want %d", len(got), len(want))
	}
}

// lines are n log lines, one every step before now, the oldest first, with _id from 1 on.
func lines(n int, step time.Duration) []bson.Document {
	var docs []bson.Document
	for i := range n {
		at := now.Add(-time.Duration(n-i) * step)
		docs = append(docs, bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i+1)).AppendDateTime("time", at.UnixMilli()).
			AppendInt32("dev", int32(i%7)).AppendString("text", "a line").Build()))
	}
	return docs
}

// failer is a test, or one run of a property's.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Failed() bool
}
