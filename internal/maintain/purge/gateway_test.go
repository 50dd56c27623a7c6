package purge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"oxbow"
	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/maintain/purge"
)

// openServer opens a gateway and reaches it by its URI.
func openServer(t *testing.T, layout string) store {
	t.Helper()
	config := fmt.Sprintf("listen: 127.0.0.1:0\nbackends:\n  local: {embedded: %q}\n%s", t.TempDir(), layout)
	g, err := oxbow.Open(t.Context(), oxbow.Options{Config: []byte(config)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := remote.Open(g.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close the gateway: %v", err)
		}
	})
	return store{b, logs}
}

// layouts are a collection whole and split in each way.
var layouts = map[string]string{
	"plain": "",
	"time":  "collections:\n  fla.log:\n    time: {field: time, every: hour}\n",
	"hash":  "collections:\n  fla.log:\n    hash: {field: dev, count: 4}\n",
	"both":  "collections:\n  fla.log:\n    time: {field: time, every: hour}\n    hash: {field: dev, count: 4}\n",
}

// TestByURI: every strategy on every layout, through a gateway as a server.
func TestByURI(t *testing.T) {
	for name, layout := range layouts {
		s := openServer(t, layout)
		for _, strategy := range byTime {
			for _, withArchive := range []bool{false, true} {
				if withArchive && strategy == purge.Nightly {
					continue // it is Ranges
				}
				t.Run(fmt.Sprintf("%s %s archive=%t", name, strategy, withArchive), func(t *testing.T) {
					s.index(t, `{"time": 1}`)
					docs := lines(240, 30*time.Second)
					s.insert(t, docs...)
					o := s.options(strategy, hour)
					o.Batch, o.Slice = 20, 10*time.Minute
					archive := &kept{}
					if withArchive {
						o.Archive = archive
					}
					did, err := finish(t.Context(), o)
					if err != nil {
						t.Fatal(err)
					}
					wantSame(t, s.all(t), docs[120:])
					if did.Documents != 120 {
						t.Errorf("did %d documents, want 120", did.Documents)
					}
					if withArchive {
						wantSame(t, inOrder(archive.docs), docs[:120])
					}
					s.command(t, `{"delete": "log", "deletes": [{"q": {}, "limit": 0}]}`)
				})
			}
		}
	}
}

// TestByURIWithoutIndex: a gateway's explanation tells of a collection scan in any partition.
func TestByURIWithoutIndex(t *testing.T) {
	for name, layout := range layouts {
		s := openServer(t, layout)
		docs := lines(240, 30*time.Second)
		s.insert(t, docs...)
		for _, strategy := range byTime {
			_, err := finish(t.Context(), s.options(strategy, hour))
			wantRefusal(t, err, `createIndex({"time": 1})`)
		}
		if got := s.all(t); len(got) != len(docs) {
			t.Errorf("%s: %d documents are left, want all", name, len(got))
		}
	}
}

// TestDropByURI: partitions of a gateway go whole, those whose time is over, and no other.
func TestDropByURI(t *testing.T) {
	s := openServer(t, layouts["both"])
	docs := lines(240, 60*time.Second) // four hours
	s.insert(t, docs...)
	for _, withArchive := range []bool{false, true} {
		o := s.options(purge.Drop, purge.Predicate{Before: now.Add(-3 * time.Hour)})
		if withArchive {
			o.Predicate.Before = now.Add(-2*time.Hour - time.Second)
		}
		parts, err := purge.GatewayParts(t.Context(), s, logs)
		if err != nil {
			t.Fatal(err)
		}
		o.Parts = parts
		if withArchive {
			o.Archive, o.ArchiveAs = &kept{}, logs
		}
		if _, err := finish(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		// An hour that ends a second after the cut stays.
		wantSame(t, s.all(t), docs[60:])
	}
}

// TestDropByAnotherField: partitions that are split by one field are not dropped by the time in another.
func TestDropByAnotherField(t *testing.T) {
	s := openServer(t, layouts["both"])
	docs := lines(240, 60*time.Second)
	s.insert(t, docs...)
	parts, err := purge.GatewayParts(t.Context(), s, logs)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(purge.Drop, purge.Predicate{Field: "created", Age: time.Hour})
	o.Parts = parts
	_, err = finish(t.Context(), o)
	wantRefusal(t, err, "is split by time and not by created")
	wantSame(t, s.all(t), docs)
	o.Predicate.Field = "time"
	if _, err := finish(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	wantSame(t, s.all(t), docs[180:])
}

// TestDropFrom: a part some of whose time lies before From stays.
func TestDropFrom(t *testing.T) {
	s := openStore(t)
	for _, name := range []string{"log19700101", "log19891231", "log20260226", "log20260227"} {
		s.ns.Collection = name
		s.insert(t, lines(1, 0)...)
	}
	parts, err := purge.NewNamedParts(s, "fla.log{yyyymmdd}", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from time.Time
		left string
	}{
		{time.Date(2026, 2, 26, 1, 0, 0, 0, time.UTC), "fla.log19700101 fla.log19891231 fla.log20260226"},
		{time.Time{}, "fla.log19700101 fla.log19891231"},
		{time.Unix(0, 0), ""},
	} {
		o := s.options(purge.Drop, purge.Predicate{Age: 24 * time.Hour, From: test.from})
		o.Parts = parts
		if _, err := finish(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		left, err := parts.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range left {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != test.left {
			t.Errorf("from %v, %q are left, want %q", test.from, got, test.left)
		}
	}
}

// TestNamedParts: collections that are named by their day go when it is over in their zone, and others do not.
func TestNamedParts(t *testing.T) {
	s := openStore(t)
	for _, name := range []string{"log260226", "log260227", "log260228", "log260301", "log260230", "log26022", "log2602271", "log", "logs260227"} {
		s.ns.Collection = name
		s.insert(t, lines(1, 0)...)
	}
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := purge.NewNamedParts(s, "fla.log{yymmdd}", zone)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(purge.Drop, purge.Predicate{Before: time.Date(2026, 2, 27, 16, 0, 0, 0, time.UTC)}) // when the 28th begins in Shanghai
	o.Parts = parts
	if did, err := finish(t.Context(), o); err != nil || did.Documents != 2 {
		t.Errorf("did %d documents, %v; want 2", did.Documents, err)
	}
	left, err := parts.List(t.Context())
	if err != nil || len(left) != 2 || left[0].Name != "fla.log260228" || left[1].Name != "fla.log260301" {
		t.Errorf("left %v, %v", left, err)
	}
	for _, name := range []string{"log260230", "log26022", "log2602271", "log", "logs260227"} {
		s.ns.Collection = name
		if len(s.all(t)) != 1 {
			t.Errorf("%s is gone", name)
		}
	}
	for _, bad := range []string{"fla", "fla.log", "fla.log{", "fla.log{}", "fla.log{slot}", "fla.log{yyyy}", "fla.log{mmdd}"} {
		if _, err := purge.NewNamedParts(s, bad, nil); err == nil {
			t.Errorf("%q is taken for a template", bad)
		}
	}
}

// TestDatabaseADay: a database with a date in its name goes with its collection.
func TestDatabaseADay(t *testing.T) {
	s := openStore(t)
	for _, name := range []string{"db260227", "db260301"} {
		s.ns = backend.Namespace{Database: name, Collection: "log" + name[2:]}
		s.insert(t, lines(1, 0)...)
	}
	parts, err := purge.NewNamedParts(s, "db{yymmdd}.log{yymmdd}", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(purge.Drop, purge.Predicate{Age: time.Hour})
	o.Parts = parts
	if _, err := finish(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	reply := s.command(t, `{"listDatabases": 1, "nameOnly": true, "$db": "admin"}`)
	list, _ := bson.Get(reply, "databases")
	n := 0
	for it := bson.Elements(list.Data); it.Next(); {
		n++
	}
	if n != 1 {
		t.Errorf("databases %s, want one", list)
	}
}
