package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/config"
	"oxbow/internal/mongoerr"
)

const powerLayout = "collections:\n  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 2}}\n" +
	"  fla.own: {time: {field: time, every: day, as: database}}\n"

// disks are what a disk could hold when the power went, each before one command of the catalog to its backend.
type disks struct {
	backend.Backend
	live *vfs.MemFS
	step int // under way

	mu sync.Mutex // the catalog sends commands for several partitions at once
	at []disk
}

type disk struct {
	step    int
	command string
	fs      *vfs.MemFS
}

func (d *disks) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	d.clone(req.Body.String())
	return d.Backend.Run(ctx, req)
}

func (d *disks) clone(command string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rng := rand.New(rand.NewPCG(uint64(len(d.at)), 1))
	d.at = append(d.at, disk{d.step, command, d.live.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: len(d.at) % 3 * 50, RNG: rng})})
}

// The power goes before each single command that making, hiding and dropping partitions and indexes comes to. After the start there is what
// was before the step that was under way, or what it makes, and nothing in between.
func TestPowerFailure(t *testing.T) {
	live := vfs.NewCrashableMem()
	r := newRigOn(t, powerLayout, func() vfs.FS { return live })
	d := &disks{Backend: r.backends["local"].Backend, live: live}
	r.backends["local"].Backend = d
	ctx := t.Context()
	do := func(f func(context.Context, string, string) error, ns, name string) func() error {
		return func() error { return f(ctx, ns, name) }
	}
	ensure := func(ns string, day int) func() error {
		return func() error {
			_, err := r.Ensure(ctx, ns, places(day))
			return err
		}
	}
	create := func(spec string) func() error {
		return func() error {
			_, _, err := r.CreateIndexes(ctx, "fla.log", []bson.Document{bsontest.Doc(t, spec)})
			return err
		}
	}
	steps := []func() error{
		ensure("fla.log", 10),
		create(`{"key": {"dev": 1}, "name": "dev_1"}`),
		ensure("fla.log", 11),
		ensure("fla.own", 10),
		func() error {
			r.run("local", `{"insert": "log_20260110_0", "$db": "fla", "documents": [{"_id": 1, "dev": 2}], "writeConcern": {"j": true}}`)
			r.run("local", `{"insert": "own", "$db": "fla_20260110", "documents": [{"_id": 2}], "writeConcern": {"j": true}}`)
			return nil
		},
		do(r.Hide, "fla.log", "fla.log_20260110_1"),
		create(`{"key": {"time": 1, "dev": 1}, "name": "only", "unique": true}`),
		do(r.Undo, "fla.log", "fla.log_20260110_1"),
		do(r.DropPartition, "fla.log", "fla.log_20260111_0"),
		ensure("fla.log", 11), // a second generation
		func() error {
			_, err := r.DropIndexes(ctx, "fla.log", text("dev_1"))
			return err
		},
		func() error {
			_, err := r.Drop(ctx, "fla.own")
			return err
		},
		func() error {
			_, err := r.Drop(ctx, "fla.log")
			return err
		},
	}
	seen := []string{r.see()}
	for i, step := range steps {
		d.step = i
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		d.step = -1 // what see does is no step
		seen = append(seen, r.see())
	}
	if len(d.at) < 100 {
		t.Fatalf("only %d commands", len(d.at))
	}
	for n, at := range d.at {
		if at.step < 0 || at.step == 4 { // the inserts are not the catalog's: either may be there alone
			continue
		}
		again := newRigOn(t, powerLayout, func() vfs.FS { return at.fs })
		if err := again.Sweep(ctx); err != nil {
			t.Errorf("power failure %d, step %d, before %s: %v", n, at.step, at.command, err)
		}
		if got := again.see(); got != seen[at.step] && got != seen[at.step+1] {
			t.Errorf("power failure %d, step %d, before %s:\n%s\nwant\n%s\nor\n%s", n, at.step, at.command, got, seen[at.step], seen[at.step+1])
		}
		if len(again.Stray()) > 0 {
			t.Errorf("power failure %d, step %d, before %s: stray %v", n, at.step, at.command, again.Stray())
		}
	}
}

func text(s string) bson.Value {
	return bson.Value{Type: bson.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// see describes the partitions with what they hold, and what there is physically.
func (r *rig) see() string {
	var lines []string
	d := deployment{"local", r.backends["local"]}
	for _, col := range r.Snapshot().Collections("") {
		lines = append(lines, fmt.Sprint(col.Namespace(), " ", indexNames(col.Indexes)))
		for _, p := range col.All {
			docs, err := d.read(r.t.Context(), p.Database, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "find", p.Collection) })
			if err != nil {
				r.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprint(p.Name(), " ", p.State, " ", r.indexes("local", p.Database, p.Collection), " ", len(docs)))
		}
	}
	databases, err := d.databases(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range databases {
		if name == config.DefaultCatalog { // its collections come with the first record
			continue
		}
		lines = append(lines, fmt.Sprint(name, ": ", r.physical("local", name)))
	}
	for _, name := range r.physical("local", config.DefaultCatalog) {
		if name != collectionsStored && name != partitionsStored {
			lines = append(lines, "in the catalog: "+name)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Index commands that were cut short on some partition are carried through by Sweep; a unique index that can't be is taken back.
func TestIndexingCutShortIsFinished(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10, 11)
	r.insert("local", "fla", "log_20260111", `{"_id": 1, "time": 1}`)
	r.insert("local", "fla", "log_20260111", `{"_id": 2, "time": 1}`)
	spec := func(text string) []bson.Document { return []bson.Document{bsontest.Doc(t, text)} }
	want := func(what string, indexes ...string) {
		t.Helper()
		r.open(byDay)
		if err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range r.physical("local", "fla") {
			r.want(what+": indexes of "+name, r.indexes("local", "fla", name), append([]string{"_id_"}, indexes...)...)
		}
		var listed []string
		for _, spec := range r.Snapshot().Collection("fla.log").Indexes {
			listed = append(listed, nameOf(spec))
		}
		r.want(what+": listed", listed, indexes...)
		if r.Snapshot().Collection("fla.log").record.indexing {
			t.Errorf("%s: still under way", what)
		}
	}
	cut := func(command string, do func() ([]Outcome, error)) {
		t.Helper()
		r.backends["local"].failOn(command, "log_20260111")
		outcomes, err := do()
		r.backends["local"].failOn("", "")
		if err != nil || allDone(outcomes) {
			t.Fatalf("%s was not cut short: %v", command, err)
		}
	}
	create := func(text string) func() ([]Outcome, error) {
		return func() ([]Outcome, error) {
			_, outcomes, err := r.CreateIndexes(t.Context(), "fla.log", spec(text))
			return outcomes, err
		}
	}
	cut("createIndexes", create(`{"key": {"a": 1}, "name": "a_1"}`))
	want("created", "a_1")
	cut("createIndexes", create(`{"key": {"time": 1}, "name": "only", "unique": true}`))
	want("taken back", "a_1")
	cut("dropIndexes", func() ([]Outcome, error) {
		return r.DropIndexes(t.Context(), "fla.log", text("a_1"))
	})
	want("dropped")
	if _, _, err := r.CreateIndexes(t.Context(), "fla.log", spec(`{"key": {"time": 1}, "name": "only", "unique": true}`)); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Errorf("a unique index on equal keys: %v", err)
	}
	want("refused")
}
