package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// TestForeignDocuments: what somebody else has written into the jobs' collections keeps no job from being seen, run and removed, and is told by its name.
func TestForeignDocuments(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		p := r.start(nil, Spec{ID: "good", Kind: "toy"}, Spec{ID: "bad", Kind: "toy"})
		defer p.stop()
		time.Sleep(5 * time.Second) // both are stored, once
		for _, doc := range []driver.D{
			{{Key: "_id", Value: "bad"}, {Key: "lease", Value: "nobody's"}},
			{{Key: "_id", Value: 7}, {Key: "state", Value: 7}},
			{{Key: "_id", Value: driver.D{{Key: "a", Value: 1}}}},
			{{Key: "_id", Value: "odd"}, {Key: "pace", Value: driver.D{{Key: "rate", Value: math.NaN()}, {Key: "share", Value: math.Inf(1)}}},
				{Key: "orders", Value: driver.D{{Key: "documents", Value: math.Inf(1)}, {Key: "bytes", Value: -5.0}}},
				{Key: "lease", Value: driver.D{{Key: "owner", Value: "x"}, {Key: "length", Value: int64(math.MaxInt64)}}}, {Key: "state", Value: "running"}},
		} {
			if _, err := p.opts.Store.delete(t.Context(), jobsStored, driver.D{{Key: "_id", Value: doc[0].Value}}); err != nil {
				t.Fatal(err)
			}
			if err := p.opts.Store.insert(t.Context(), jobsStored, doc); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.opts.Store.insert(t.Context(), historyStored, driver.D{{Key: "job", Value: "good"}, {Key: "n", Value: "first"}}); err != nil {
			t.Fatal(err)
		}
		before := r.steps()
		time.Sleep(time.Minute)
		if r.steps() == before {
			t.Error("nothing runs any more")
		}
		list, err := p.opts.Store.List(t.Context(), r.now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(list); err != nil {
			t.Errorf("jobs can't be told as JSON: %v", err)
		}
		faults := map[string]string{}
		for _, s := range list {
			if s.State == Failed {
				faults[s.ID] = s.Reason
			}
		}
		if len(list) != 5 || len(faults) != 3 || !strings.Contains(faults["bad"], "job bad can't be read") {
			t.Errorf("%d jobs, of which can't be read: %q", len(list), faults)
		}
		if h := p.history("good"); len(h) != 1 || !strings.Contains(h[0].Reason, "can't be read") {
			t.Errorf("history: %+v", h)
		}
		if err := p.opts.Store.Remove(t.Context(), "bad"); err != nil {
			t.Error(err)
		}
		if _, err := p.opts.Store.Get(t.Context(), "bad", r.now()); !errors.Is(err, ErrNoJob) {
			t.Errorf("removed: %v", err)
		}
		p.PutAgain("bad")
		time.Sleep(5 * time.Second)
		if s := p.status("bad"); !s.Readable() || s.State != Running {
			t.Errorf("put again: %+v", s)
		}
	})
}

// TestOrdersOfLimits: an order of a limit is a number that is one.
func TestOrdersOfLimits(t *testing.T) {
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		doc, err := driver.Marshal(driver.D{{Key: "documents", Value: n}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ParseOrder(bson.Document(doc)); err == nil || !strings.Contains(err.Error(), "documents must be a number") {
			t.Errorf("%g: %v", n, err)
		}
		if l := (&Orders{Documents: &n}).limits(Limits{Documents: 5}); l.Documents != 5 {
			t.Errorf("stored %g: the limit is %g", n, l.Documents)
		}
	}
}

// TestStopFileUnseen: where a stop file may be, and nobody can see it, nothing is done.
func TestStopFileUnseen(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := r.start(nil, Spec{ID: "a", Kind: "toy", StopFile: filepath.Join(file, "stop")})
		defer p.stop()
		time.Sleep(time.Minute)
		if s := p.status("a"); r.steps() != 0 || s.State != Held || !strings.Contains(s.Reason, "is not known") {
			t.Errorf("%d steps: %+v", r.steps(), s)
		}
	})
}

// noRoom is a deployment that has no room for the history.
type noRoom struct{ backend.Backend }

func (b noRoom) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if name, v, _ := bson.First(req.Body); name == "insert" {
		if collection, _ := v.StringValueOK(); collection == historyStored {
			return nil, mongoerr.New(mongoerr.OutOfDiskSpace, "no space left on device")
		}
	}
	return b.Backend.Run(ctx, req)
}

// TestNoRoomForHistory: a job that is done on a full disk is done, also where nothing can be added to its history, and nobody waits for its lease.
func TestNoRoomForHistory(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		begun := r.now()
		p := r.process(func(o *Options) { o.Store = NewStore(noRoom{o.Store.run}, "jobs") })
		s, err := p.Once(t.Context(), Spec{ID: "a", Kind: "toy"}, nil)
		if took := r.now().Sub(begun); err != nil || s.State != Done || s.Owner != "" || took > 8*time.Second {
			t.Errorf("after %s: %+v, %v", took, s, err)
		}
	})
}

// TestRemovedJobSaysSo: a job that a process runs no more is not said to have changed.
func TestRemovedJobSaysSo(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		p := r.start(nil, Spec{ID: "a", Kind: "toy"}, Spec{ID: "b", Kind: "toy"})
		defer p.stop()
		time.Sleep(10 * time.Second)
		p.Set([]Spec{{ID: "b", Kind: "toy", Priority: 2}})
		time.Sleep(10 * time.Second)
		if s := p.status("a"); s.State != Waiting || s.Reason != "it is no job of this process any more" {
			t.Errorf("%+v", s)
		}
		if h := p.history("b"); len(h) != 1 || h[0].Reason != "its specification has changed" {
			t.Errorf("%+v", h)
		}
	})
}
