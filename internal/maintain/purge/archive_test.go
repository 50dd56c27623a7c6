package purge_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain/purge"
)

// kept is an archive in memory that runs something before it keeps documents.
type kept struct {
	before func() error

	mu   sync.Mutex // workers archive at once
	docs []bson.Document
}

func (k *kept) Append(_ backend.Namespace, docs []bson.Document) error {
	if k.before != nil {
		if err := k.before(); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range docs {
		k.docs = append(k.docs, slices.Clone(d))
	}
	return nil
}

// inOrder sorts documents by _id.
func inOrder(docs []bson.Document) []bson.Document {
	slices.SortFunc(docs, func(a, b bson.Document) int {
		x, _ := bson.Get(a, "_id")
		y, _ := bson.Get(b, "_id")
		return bson.Compare(x, y)
	})
	return docs
}

// archived are the strategies that can archive before they delete.
var archived = []purge.Strategy{purge.Slices, purge.Ranges, purge.IDs}

func TestArchived(t *testing.T) {
	for _, strategy := range archived {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			docs := lines(600, 15*time.Second)
			s.insert(t, docs...)
			o := s.options(strategy, hour)
			archive := &kept{}
			o.Archive, o.Workers = archive, 1
			did, err := finish(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, s.all(t), docs[360:])
			wantSame(t, inOrder(archive.docs), docs[:360])
			if did.Documents != 360 {
				t.Errorf("did %d documents, want 360", did.Documents)
			}
		})
	}
}

// TestArchivedBeyondOneReply: documents that don't fit into one reply together are none that were skipped.
func TestArchivedBeyondOneReply(t *testing.T) {
	for _, strategy := range archived {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			var docs []bson.Document
			for i := range 12 {
				docs = append(docs, bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i)).AppendDateTime("time", now.Add(-2*time.Hour).UnixMilli()).
					AppendString("text", strings.Repeat("x", 3<<20)).Build()))
			}
			s.insert(t, docs[:8]...)
			s.insert(t, docs[8:]...)
			o := s.options(strategy, hour)
			archive := &kept{}
			o.Archive, o.Workers = archive, 1
			did, err := finish(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if left := s.all(t); len(left) > 0 || did.Documents != 12 || len(did.Skipped) > 0 || len(archive.docs) != 12 {
				t.Errorf("%d are left, %d gone, %d archived, skipped: %v", len(left), did.Documents, len(archive.docs), did.Skipped)
			}
		})
	}
}

// TestChangedBetween: a document that changes after it was read stays when it does not match any more, and when it still does it goes as it is then, after
// it was archived so.
func TestChangedBetween(t *testing.T) {
	for _, strategy := range archived {
		t.Run(string(strategy), func(t *testing.T) {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			s.insert(t, lines(600, 15*time.Second)...)
			o := s.options(strategy, hour)
			archive := &kept{}
			changed := false
			archive.before = func() error {
				if !changed {
					changed = true
					s.command(t, `{"update": "log", "updates": [
						{"q": {"_id": 3}, "u": {"$set": {"time": {"$date": "2026-03-01T11:59:00Z"}}}},
						{"q": {"_id": 5}, "u": {"$set": {"text": "another line"}}}]}`)
				}
				return nil
			}
			o.Archive, o.Workers, o.Slice = archive, 1, time.Hour
			did, err := finish(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			left := s.all(t)
			if len(left) != 241 {
				t.Errorf("%d documents are left, want 241", len(left))
			}
			if id, _ := bson.Get(left[0], "_id"); id.Int32() != 3 {
				t.Errorf("document 3 is gone, though it does not match any more")
			}
			if did.Documents != 359 {
				t.Errorf("did %d documents, want 359", did.Documents)
			}
			var skipped int64
			for _, skip := range did.Skipped {
				skipped += skip.Count
			}
			if skipped < 2 {
				t.Errorf("%d documents are told to be skipped, want the two that changed", skipped)
			}
			five := bsontest.Doc(t, `{"_id": 5, "text": "another line"}`)
			if !slices.ContainsFunc(archive.docs, func(d bson.Document) bool { return same(d, five, "_id") && same(d, five, "text") }) {
				t.Errorf("document 5 is not archived as it was when it went")
			}
		})
	}
}

func same(a, b bson.Document, field string) bool {
	x, _ := bson.Get(a, field)
	y, _ := bson.Get(b, field)
	return bson.Equal(x, y)
}

// TestArchiveFails: nothing is deleted that could not be archived.
func TestArchiveFails(t *testing.T) {
	for _, strategy := range archived {
		s := openStore(t)
		s.index(t, `{"time": 1}`)
		docs := lines(600, 15*time.Second)
		s.insert(t, docs...)
		o := s.options(strategy, hour)
		full := errors.New("no space left on device")
		o.Archive = &kept{before: func() error { return full }}
		if _, err := finish(t.Context(), o); !errors.Is(err, full) {
			t.Errorf("%s: error %v, want %v", strategy, err, full)
		}
		wantSame(t, s.all(t), docs)
	}
}

// TestAlwaysChanging: a document that changes each time it is read is passed over in the end, and told so.
func TestAlwaysChanging(t *testing.T) {
	s := openStore(t)
	s.index(t, `{"time": 1}`)
	s.insert(t, lines(600, 15*time.Second)...)
	o := s.options(purge.Ranges, hour)
	o.Workers = 1
	o.Archive = &kept{before: func() error {
		s.command(t, `{"update": "log", "updates": [{"q": {"_id": 3}, "u": {"$inc": {"n": 1}}}]}`)
		return nil
	}}
	if _, err := finish(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	left := s.all(t)
	if id, _ := bson.Get(left[0], "_id"); len(left) != 241 || id.Int32() != 3 {
		t.Errorf("%d documents are left, the first of them %s", len(left), left[0])
	}
}

// TestDropArchived: what a collection held is archived before it is dropped; one that is written to meanwhile is not dropped.
func TestDropArchived(t *testing.T) {
	s := openStore(t)
	s.ns.Collection = "log260227"
	docs := lines(2500, time.Second)
	s.insert(t, docs...)
	named, err := purge.NewNamedParts(s, "fla.log{yymmdd}", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(purge.Drop, purge.Predicate{Age: 24 * time.Hour})
	archive := &kept{}
	o.Parts, o.Archive = named, archive
	late := bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", 0).Build())
	archive.before = func() error { s.insert(t, late); archive.before = nil; return nil }
	_, err = finish(t.Context(), o)
	wantRefusal(t, err, "still writes")
	if n := len(s.all(t)); n != 2501 {
		t.Errorf("%d documents are left, want all 2501", n)
	}
	archive.docs = nil
	did, err := finish(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, s.all(t), nil)
	wantSame(t, inOrder(archive.docs), append([]bson.Document{late}, docs...))
	if did.Documents != 2501 {
		t.Errorf("did %d documents, want 2501", did.Documents)
	}
}

// killer is a backend that loses its connection at one of its commands, before or after that was run.
type killer struct {
	backend.Backend
	at    int
	after bool
	cause error
}

func (k *killer) Run(ctx context.Context, r *backend.Request) (bson.Document, error) {
	k.at--
	if k.at == 0 && !k.after {
		return nil, k.cause
	}
	reply, err := k.Backend.Run(ctx, r)
	if k.at == 0 {
		return nil, k.cause
	}
	return reply, err
}

// TestDropArchivedLarge: documents of which no two fit into a batch are archived one after the other.
func TestDropArchivedLarge(t *testing.T) {
	s := openStore(t)
	s.ns.Collection = "log260227"
	var docs []bson.Document
	for i := range 3 {
		doc := bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i)).AppendString("text", strings.Repeat("x", 10<<20)).Build())
		s.insert(t, doc)
		docs = append(docs, doc)
	}
	named, err := purge.NewNamedParts(s, "fla.log{yymmdd}", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(purge.Drop, purge.Predicate{Age: 24 * time.Hour})
	archive := &kept{}
	o.Parts, o.Archive = named, archive
	if _, err := finish(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := len(s.all(t)); n != 0 || !slices.EqualFunc(archive.docs, docs, func(a, b bson.Document) bool { return bytes.Equal(a, b) }) {
		t.Errorf("%d documents are left and %d archived, want none and all 3", n, len(archive.docs))
	}
}
