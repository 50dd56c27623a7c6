package purge_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
)

var errLost = errors.New("the connection was lost")

// TestKilled cuts a job off at each of its commands in turn, before and after it was run, with the checkpoint of the last step that was stored; a new job
// goes on from there. Documents that change meanwhile stay.
func TestKilled(t *testing.T) {
	for _, strategy := range append(byTime, purge.Drop) {
		for _, withArchive := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				if withArchive && strategy == purge.Nightly {
					continue // it is Ranges
				}
				t.Run(fmt.Sprintf("%s archive=%t after=%t", strategy, withArchive, after), func(t *testing.T) {
					for at := 1; killedAt(t, strategy, withArchive, after, at); at++ {
						if t.Failed() {
							t.Fatalf("cut off at command %d", at)
						}
					}
				})
			}
		}
	}
}

// killedAt reports whether the job sent as many commands.
func killedAt(t *testing.T, strategy purge.Strategy, withArchive, after bool, at int) bool {
	s := openStore(t)
	docs := lines(40, 180*time.Second) // two hours
	ns := logs
	if strategy == purge.Drop {
		ns.Collection = "log260227"
	}
	s.ns = ns
	s.index(t, `{"time": 1}`)
	s.insert(t, docs...)
	k := &killer{Backend: s, at: at, after: after, cause: errLost}
	o := s.options(strategy, purge.Predicate{Field: "time", Before: now.Add(-time.Hour)})
	// A step is a few batches long.
	late := now
	o.Clock = func() time.Time { late = late.Add(300 * time.Millisecond); return late }
	o.Targets = purge.At(k, ns)
	o.Workers, o.Batch, o.Slice = 1, 7, 20*time.Minute
	archive := &kept{}
	if withArchive {
		o.Archive = archive
	}
	if strategy == purge.Drop {
		parts, err := purge.NewNamedParts(k, "fla.log{yymmdd}", nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Parts = parts
	}
	checkpoint, err := untilLost(t, o)
	lost := errors.Is(err, errLost)
	if err != nil && !lost {
		t.Fatal(err)
	}
	gone := 20
	if strategy == purge.Drop {
		gone = 40
	} else if lost && len(s.all(t)) == 40 {
		// It changes in between, so it stays.
		s.command(t, `{"update": "log", "updates": [{"q": {"_id": 2}, "u": {"$set": {"time": {"$date": "2026-03-01T11:59:00Z"}}}}]}`)
	}
	want := docs[gone:]
	if left := s.all(t); len(left) > 1 && lost {
		if two := left[1]; same(two, bsontest.Doc(t, `{"time": {"$date": "2026-03-01T11:59:00Z"}}`), "time") {
			want = append([]bson.Document{two}, want...)
		}
	}
	if lost {
		goOn(t, o, checkpoint)
	}
	wantSame(t, s.all(t), want)
	if withArchive {
		for _, d := range docs[:gone] {
			if len(want) > len(docs)-gone && same(d, want[0], "_id") {
				continue
			}
			wantArchived(t, archive.docs, d)
		}
	}
	return lost
}

// untilLost runs a job to its end or its first error, and returns the last checkpoint.
func untilLost(t *testing.T, o purge.Options) (bson.Document, error) {
	t.Helper()
	job, err := purge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var checkpoint bson.Document
	for {
		var out maintain.Outcome
		if out, err = job.Step(t.Context(), checkpoint, free{}); err != nil || out.Done {
			return checkpoint, err
		}
		checkpoint = out.Checkpoint
	}
}

// goOn runs a new job from a checkpoint to its end.
func goOn(t *testing.T, o purge.Options, checkpoint bson.Document) {
	t.Helper()
	job, err := purge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		out, err := job.Step(t.Context(), checkpoint, free{})
		if err != nil {
			t.Fatal(err)
		}
		if out.Done {
			return
		}
		checkpoint = out.Checkpoint
	}
}

func wantArchived(t *testing.T, all []bson.Document, doc bson.Document) {
	t.Helper()
	for _, d := range all {
		if string(d) == string(doc) {
			return
		}
	}
	t.Errorf("is gone and not archived: %s", doc)
}

// TestEachStepTwice runs every step of a job twice from the same checkpoint: the second time it takes nothing more than the first time would have.
func TestEachStepTwice(t *testing.T) {
	for _, strategy := range byTime {
		s := openStore(t)
		s.index(t, `{"time": 1}`)
		docs := lines(400, 20*time.Second)
		s.insert(t, docs...)
		o := s.options(strategy, hour)
		o.Batch = 20
		first, err := purge.New(o)
		if err != nil {
			t.Fatal(err)
		}
		second, err := purge.New(o)
		if err != nil {
			t.Fatal(err)
		}
		var checkpoint bson.Document
		for done := false; !done; {
			out, err := first.Step(t.Context(), checkpoint, free{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := second.Step(t.Context(), checkpoint, free{}); err != nil {
				t.Fatal(err)
			}
			checkpoint, done = out.Checkpoint, out.Done
		}
		wantSame(t, s.all(t), docs[220:])
	}
}
