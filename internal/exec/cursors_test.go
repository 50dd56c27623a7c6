package exec

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// merging opens a sorted find over the fixture's partitions, in batches of one document, and reads the first.
func merging(t *testing.T, f *fixture) query.Documents {
	t.Helper()
	f.run(t, document(t, `{"insert": "c", "documents": [{"_id": 1, "k": 0, "v": 1}, {"_id": 2, "k": 1, "v": 2}, {"_id": 3, "k": 2, "v": 3}, {"_id": 4, "k": 3, "v": 4}]}`))
	s, err := statement.ParseFind(document(t, `{"find": "c", "sort": {"v": 1}, "$db": "db"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.NewFind(s, f.source, env)
	if err != nil {
		t.Fatal(err)
	}
	p.BatchSize = 1
	stream := f.exec.Find(p)
	if doc, err := stream.Next(t.Context()); doc == nil || err != nil {
		t.Fatalf("first document %s, %v", doc, err)
	}
	f.sent()
	return stream
}

// TestCloseKillsAll: a stream that is closed before its end leaves no cursor open on any backend, whatever one of them says.
func TestCloseKillsAll(t *testing.T) {
	f := newFixture(t, "hash")
	stream := merging(t, f)
	f.rule(t, `rs1 killCursors * unavailable`)
	if err := stream.Close(); err == nil {
		t.Error("the failure to kill a cursor was not told")
	}
	if got := f.sent(); got != "rs1: killCursors db.c_0\nrs2: killCursors db.c_1\n" {
		t.Errorf("closing sent:\n%s", got)
	}
	if err := stream.Close(); err != nil || f.sent() != "" {
		t.Errorf("closing again gave %v, or sent something", err)
	}
}

// TestInterruptedKillsAll: a command that is ended while it waits for a backend fails with what ended it, and leaves no cursor open.
func TestInterruptedKillsAll(t *testing.T) {
	f := newFixture(t, "hash")
	stream := merging(t, f)
	f.rule(t, `rs1 getMore * stalls`)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := mongoerr.New(mongoerr.CursorKilled, "Cursor was killed")
	cancel(cause)
	if _, err := stream.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("the error is %v", err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if got := f.sent(); got != "rs1: getMore db.c_0\nrs1: killCursors db.c_0\nrs2: killCursors db.c_1\n" {
		t.Errorf("it sent:\n%s", got)
	}
}

// TestCloseIsBounded: backends that don't answer keep the closing of a stream no longer than one of them alone would.
func TestCloseIsBounded(t *testing.T) {
	f := newFixture(t, "hash")
	stream := merging(t, f)
	f.rule(t, `rs1 killCursors * stalls`)
	f.rule(t, `rs2 killCursors * stalls`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := stream.(source).kill(ctx); err == nil {
		t.Error("cursors that could not be killed were not told of")
	}
}

// TestGone: a stream that comes to a partition which was dropped meanwhile fails; it does not pass over its documents.
func TestGone(t *testing.T) {
	f := newFixture(t, "time")
	f.run(t, document(t, `{"insert": "c", "documents": [{"_id": 1, "at": {"$date": "2001-01-01T01:00:00Z"}}]}`))
	f.exec.Gone = func(t plan.Target) bool { return t.Namespace.Collection == "c_0102" }
	s, err := statement.ParseFind(document(t, `{"find": "c", "$db": "db"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.NewFind(s, f.source, env)
	if err != nil {
		t.Fatal(err)
	}
	got, err := drain(t.Context(), f.exec.Find(p))
	if want := "{\"_id\": {\"$numberInt\":\"1\"},\"at\": {\"$date\":{\"$numberLong\":\"978310800000\"}}}\n"; got != want {
		t.Errorf("before the partition that is gone: %s", got)
	}
	if !mongoerr.Is(err, mongoerr.QueryPlanKilled) || mongoerr.From(err).Message != "a partition of db.c was dropped before the cursor reached it" {
		t.Errorf("the error is %v", err)
	}
}

// TestPresent: a partition that is dropped while each is looked at is left out; one that fails for another reason fails the command.
func TestPresent(t *testing.T) {
	f := newFixture(t, "hash")
	f.run(t, document(t, `{"insert": "c", "documents": [{"_id": 1, "k": 0}, {"_id": 2, "k": 1}]}`))
	var targets []plan.Target
	for i := range f.source.Collection.Table.Partitions {
		targets = append(targets, plan.PartitionTarget("db.c", &f.source.Collection.Table.Partitions[i]))
	}
	validate := plan.Command{Name: "validate"}
	for _, gone := range []bool{true, false} {
		f.exec.Gone = func(t plan.Target) bool { return gone && t.Namespace.Collection == "c_0" }
		f.rule(t, `rs1 validate * unavailable`)
		present, replies, err := f.exec.Present(t.Context(), targets, validate)
		switch {
		case gone && (err != nil || len(present) != 1 || len(replies) != 1 || present[0].Namespace.Collection != "c_1"):
			t.Errorf("of a partition that is gone: %v, %v, %v", present, replies, err)
		case !gone && err == nil:
			t.Errorf("of a backend that is gone: %v, %v", present, replies)
		}
	}
	if present, _, err := f.exec.Present(t.Context(), targets, validate); len(present) != 2 || err != nil {
		t.Errorf("of both: %v, %v", present, err)
	}
}

// TestContent: batches end at their limits, and no document is lost between them.
func TestContent(t *testing.T) {
	f := newFixture(t, "hash")
	var sizes []int
	content := NewLimitedContent(merging(t, f), 3)
	for more := true; more; {
		var n int
		var err error
		if _, n, more, err = content.NextBatch(t.Context(), nil, 2, 1<<20, nil); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if !slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("batches of %v documents", sizes)
	}
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	small := NewContent(merging(t, newFixture(t, "hash")))
	defer small.Close()
	for i := range 3 {
		if _, n, _, err := small.NextBatch(t.Context(), nil, 0, 1, nil); n != 1 || err != nil {
			t.Errorf("batch %d of one byte has %d documents, %v", i, n, err)
		}
	}
}
