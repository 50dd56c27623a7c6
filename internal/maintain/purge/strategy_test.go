package purge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
)

// hour is a predicate for what is older than an hour.
var hour = purge.Predicate{Field: "time", Age: time.Hour}

// byTime are the strategies that delete by time.
var byTime = []purge.Strategy{purge.Slices, purge.Ranges, purge.IDs, purge.Nightly}

func TestStrategies(t *testing.T) {
	for _, strategy := range byTime {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			docs := lines(3000, 3*time.Second) // two and a half hours
			s.insert(t, docs...)
			did, err := finish(t.Context(), s.options(strategy, hour))
			if err != nil {
				t.Fatal(err)
			}
			// now - 1h is the time of the line at index 1800, which stays.
			wantSame(t, s.all(t), docs[1800:])
			if did.Documents != 1800 || did.Bytes == 0 || did.Remaining != 0 {
				t.Errorf("did %d documents of %d bytes, %d remain; want 1800 and 0", did.Documents, did.Bytes, did.Remaining)
			}
		})
	}
}

func TestUnpaced(t *testing.T) {
	for _, strategy := range []purge.Strategy{purge.Slices, purge.Nightly} {
		s := openStore(t)
		s.index(t, `{"time": 1}`)
		docs := lines(3000, 3*time.Second)
		s.insert(t, docs...)
		o := s.options(strategy, hour)
		o.Unpaced = true
		if _, err := finish(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		wantSame(t, s.all(t), docs[1800:])
	}
}

// measured refuses commands with a document that MongoDB's server would refuse to read.
type measured struct{ backend.Backend }

func (m measured) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	for _, seq := range req.Sequences {
		for _, doc := range seq.Documents {
			if len(doc) > 16<<20 {
				return nil, fmt.Errorf("a document of %d bytes in %s", len(doc), seq.Name)
			}
		}
	}
	return m.Backend.Run(ctx, req)
}

// TestLargeIDs: _ids of which a thousand are more than a document holds go as well.
func TestLargeIDs(t *testing.T) {
	for _, strategy := range []purge.Strategy{purge.Slices, purge.Ranges, purge.IDs} {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			for from := 0; from < 300; from += 100 {
				var docs []bson.Document
				for i := from; i < from+100; i++ {
					docs = append(docs, bson.Document(bsoncore.NewDocumentBuilder().AppendString("_id", fmt.Sprintf("%06d", i)+strings.Repeat("x", 200<<10)).
						AppendDateTime("time", now.Add(-2*time.Hour).Add(time.Duration(i)).UnixMilli()).Build()))
				}
				s.insert(t, docs...)
			}
			o := s.options(strategy, hour)
			o.Targets, o.Workers = purge.At(measured{s}, s.ns), 1
			did, err := finish(t.Context(), o)
			if left := s.all(t); err != nil || len(left) > 0 || did.Documents != 300 {
				t.Errorf("%d are left, %d gone, %v", len(left), did.Documents, err)
			}
		})
	}
}

// TestEqualKeys: more documents share a key than a batch takes.
func TestEqualKeys(t *testing.T) {
	for _, strategy := range byTime {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			var docs []bson.Document
			for i := range 1000 {
				docs = append(docs, bsontest.Doc(t, fmt.Sprintf(`{"_id": %d, "time": {"$date": "2026-03-01T10:00:00Z"}}`, i)))
			}
			s.insert(t, docs...)
			o := s.options(strategy, hour)
			o.Batch = 7
			if _, err := finish(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			wantSame(t, s.all(t), nil)
		})
	}
}

func TestWithoutIndex(t *testing.T) {
	for _, strategy := range byTime {
		s := openStore(t)
		docs := lines(100, time.Minute)
		s.insert(t, docs...)
		_, err := finish(t.Context(), s.options(strategy, hour))
		wantRefusal(t, err, `db.getSiblingDB("fla").getCollection("log").createIndex({"time": 1})`)
		wantSame(t, s.all(t), docs)
	}
	s := openStore(t)
	docs := lines(100, time.Minute)
	s.insert(t, docs...)
	_, err := finish(t.Context(), s.options(purge.IDs, purge.Predicate{Where: bsontest.Doc(t, `{"n": {"$gt": 5}, "dev": 3}`)}))
	wantRefusal(t, err, `createIndex({"dev": 1, "n": 1})`)
	wantSame(t, s.all(t), docs)
}

// TestRatio: an index that leads to much more than goes is no way to it.
func TestRatio(t *testing.T) {
	for _, strategy := range byTime {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			docs := lines(30_000, time.Second)
			s.insert(t, docs...)
			p := purge.Predicate{Field: "time", Before: now, Where: bsontest.Doc(t, `{"text": "another line"}`)}
			_, err := finish(t.Context(), s.options(strategy, p))
			wantRefusal(t, err, "examined")
			wantSame(t, s.all(t), docs)
		})
	}
}

// TestHeldKeys: an index whose first key the filter holds gives the order of the second.
func TestHeldKeys(t *testing.T) {
	for _, strategy := range byTime {
		s := openStore(t)
		s.index(t, `{"dev": 1, "time": -1}`)
		docs := lines(7000, time.Second)
		s.insert(t, docs...)
		p := purge.Predicate{Field: "time", Age: time.Hour, Where: bsontest.Doc(t, `{"dev": 3}`)}
		if _, err := finish(t.Context(), s.options(strategy, p)); err != nil {
			t.Fatal(err)
		}
		want := docs[:0:0]
		for i, d := range docs {
			if i%7 != 3 || i >= 3400 {
				want = append(want, d)
			}
		}
		wantSame(t, s.all(t), want)
	}
}

func wantRefusal(t *testing.T, err error, text string) {
	t.Helper()
	var r *purge.Refusal
	if !errors.As(err, &r) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want a refusal that tells %q", err, text)
	}
}

// asked is a pace that counts what it is asked for.
type asked struct {
	free
	mu        sync.Mutex
	documents int
	bytes     int64
}

func (a *asked) Wait(ctx context.Context, documents int, bytes int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.documents += documents
	a.bytes += bytes
	return ctx.Err()
}

// TestPace: a pace is asked for each document that goes, and for no others.
func TestPace(t *testing.T) {
	for _, strategy := range byTime {
		s := openStore(t)
		s.index(t, `{"time": 1}`)
		docs := lines(3000, 3*time.Second)
		s.insert(t, docs...)
		job, err := purge.New(s.options(strategy, hour))
		if err != nil {
			t.Fatal(err)
		}
		pace := &asked{}
		var out maintain.Outcome
		for !out.Done {
			if out, err = job.Step(t.Context(), out.Checkpoint, pace); err != nil {
				t.Fatal(err)
			}
		}
		if size := int64(len(docs[0])); pace.documents != 1800 || pace.bytes != 1800*size {
			t.Errorf("%s: asked for %d documents of %d bytes, want 1800 of %d", strategy, pace.documents, pace.bytes, 1800*size)
		}
	}
}

// TestSlicesPastOneTime: slices whose steps have time for one batch only come past more documents of the same time than a batch has, none of which goes.
func TestSlicesPastOneTime(t *testing.T) {
	s := openStore(t)
	s.index(t, `{"time": 1}`)
	docs := lines(300, 0)
	for i := range docs {
		docs[i] = bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i)).AppendDateTime("time", now.Add(-2*time.Hour).UnixMilli()).Build())
	}
	s.insert(t, docs...)
	o := s.options(purge.Slices, hour)
	o.Predicate.Where, o.Batch = bsontest.Doc(t, `{"text": "a line"}`), 10
	at := now
	o.Clock = func() time.Time { at = at.Add(600 * time.Millisecond); return at }
	job, err := purge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var out maintain.Outcome
	for range 100 {
		if out, err = job.Step(t.Context(), out.Checkpoint, free{}); err != nil {
			t.Fatal(err)
		}
		if out.Done {
			wantSame(t, s.all(t), docs)
			return
		}
	}
	t.Error("not done after 100 steps")
}
