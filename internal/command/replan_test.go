package command

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/config"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// dataOn is what commands need of a catalog with a collection d.c.
func dataOn(t *testing.T) (*Data, plan.Source) {
	t.Helper()
	cfg, err := config.Parse("", []byte("collections: {d.c: {hash: {field: h, count: 2}}}"))
	if err != nil {
		t.Fatal(err)
	}
	store := embedded.Store{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}
	b, err := embedded.Open(embedded.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	c, err := catalog.Open(context.Background(), catalog.Options{Config: cfg, Backends: map[string]backend.Backend{"local": b}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &Data{Catalog: c}, plan.Source{Backend: "local", Database: "d", Name: "c", Collection: c.Snapshot().Collection("d.c")}
}

func stale(index int32) backend.WriteError {
	return backend.WriteError{Index: index, Err: mongoerr.New(mongoerr.StaleConfig, "gone")}
}

// Statements that met a dropped partition are run again, and no other; what the tries did adds up, numbered as the client numbered it.
func TestReplanned(t *testing.T) {
	d, src := dataOn(t)
	duplicate := func(index int32) backend.WriteError {
		return backend.WriteError{Index: index, Err: mongoerr.New(mongoerr.DuplicateKey, "twice")}
	}
	id := bson.Value{Type: bson.TypeInt32, Data: []byte{7, 0, 0, 0}}
	for _, c := range []struct {
		name    string
		ordered bool
		tries   []backend.WriteReply
		only    string // of each try
		n       int64
		errors  string
		upserts string
	}{
		{"at once", true, []backend.WriteReply{{N: 6}}, "[[]]", 6, "[]", "[]"},
		{"ordered", true, []backend.WriteReply{{N: 2, Errors: []backend.WriteError{stale(2)}}, {N: 4}}, "[[] [2 3 4 5]]", 6, "[]", "[]"},
		{"ordered, twice", true, []backend.WriteReply{{N: 2, Errors: []backend.WriteError{stale(2)}}, {N: 1, Errors: []backend.WriteError{stale(1)}},
			{N: 1, Errors: []backend.WriteError{duplicate(1)}}}, "[[] [2 3 4 5] [3 4 5]]", 4, "[4]", "[]"},
		{"unordered", false, []backend.WriteReply{{N: 3, Errors: []backend.WriteError{stale(0), duplicate(2), stale(5)}},
			{N: 1, Errors: []backend.WriteError{duplicate(1)}, Upserted: []backend.Upserted{{Index: 0, ID: id}}}}, "[[] [0 5]]", 4, "[2 5]", "[0]"},
	} {
		var only [][]int32
		total, err := d.replanned(src, 6, c.ordered, func(_ plan.Source, some []int32) (*backend.WriteReply, error) {
			only = append(only, slices.Clone(some))
			return &c.tries[len(only)-1], nil
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var errors, upserts []int32
		for _, e := range total.Errors {
			errors = append(errors, e.Index)
		}
		for _, u := range total.Upserted {
			upserts = append(upserts, u.Index)
		}
		if fmt.Sprint(only) != c.only || total.N != c.n || fmt.Sprint(errors) != c.errors || fmt.Sprint(upserts) != c.upserts {
			t.Errorf("%s: tries of %v, n %d, errors %v, upserts %v", c.name, only, total.N, errors, upserts)
		}
	}
}

// A partition that goes as fast as it is made ends the write.
func TestReplannedGivesUp(t *testing.T) {
	d, src := dataOn(t)
	tries := 0
	_, err := d.replanned(src, 1, true, func(plan.Source, []int32) (*backend.WriteReply, error) {
		tries++
		return &backend.WriteReply{Errors: []backend.WriteError{stale(0)}}, nil
	})
	if !mongoerr.Is(err, mongoerr.StaleConfig) || tries != planTries+1 {
		t.Errorf("%d tries, %v", tries, err)
	}
}
