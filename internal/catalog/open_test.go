package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// rig is a catalog over real embedded backends in memory, which can be made to fail.
type rig struct {
	t        *testing.T
	backends map[string]*failing
	now      time.Time
	*Catalog
}

// failing is a backend that fails commands on demand, and counts them.
type failing struct {
	backend.Backend
	fail  atomic.Pointer[func(command string, body bson.Document) error]
	calls atomic.Int64
}

func (f *failing) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	f.calls.Add(1)
	if fail := f.fail.Load(); fail != nil {
		it := bson.Elements(req.Body)
		it.Next()
		if err := (*fail)(string(it.Key()), req.Body); err != nil {
			return nil, err
		}
	}
	return f.Backend.Run(ctx, req)
}

// failOn makes the backend fail a command whose body's text holds a part; "" mends it.
func (f *failing) failOn(command, part string) {
	if command == "" {
		f.fail.Store(nil)
		return
	}
	fail := func(name string, body bson.Document) error {
		if name == command && strings.Contains(body.String(), part) {
			return fmt.Errorf("%s: %w", command, backend.ErrUnavailable)
		}
		return nil
	}
	f.fail.Store(&fail)
}

func parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("oxbow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// newRig opens a catalog with the backends that a configuration names.
func newRig(t *testing.T, text string) *rig {
	t.Helper()
	return newRigOn(t, text, func() vfs.FS { return vfs.NewMem() })
}

// newRigOn is newRig with a file system for each backend.
func newRigOn(t *testing.T, text string, disk func() vfs.FS) *rig {
	t.Helper()
	r := &rig{t: t, backends: map[string]*failing{}, now: time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)}
	for _, b := range parsed(t, text).Backends {
		run, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: b.Name, FS: disk(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
		if err != nil {
			t.Fatalf("open backend %s: %v", b.Name, err)
		}
		t.Cleanup(func() {
			if err := run.Close(); err != nil {
				t.Errorf("close backend %s: %v", b.Name, err)
			}
		})
		r.backends[b.Name] = &failing{Backend: run}
	}
	r.open(text)
	return r
}

// open opens the catalog again, as a restart does.
func (r *rig) open(text string) {
	r.t.Helper()
	if err := r.tryOpen(text); err != nil {
		r.t.Fatalf("open the catalog: %v", err)
	}
}

func (r *rig) tryOpen(text string) error {
	opts := Options{Config: parsed(r.t, text), Backends: map[string]backend.Backend{}, Now: func() time.Time { return r.now }}
	for name, b := range r.backends {
		opts.Backends[name] = b
	}
	c, err := Open(r.t.Context(), opts)
	if err == nil {
		r.Catalog = c
	}
	return err
}

// day returns the start of a day of January 2026, UTC.
func day(d int) int64 { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC).UnixMilli() }

// ensure makes the partitions of days of January 2026, or with none those of a hash layout.
func (r *rig) ensure(ns string, days ...int) {
	r.t.Helper()
	if _, err := r.Ensure(r.t.Context(), ns, places(days...)); err != nil {
		r.t.Fatalf("ensure %s: %v", ns, err)
	}
}

func places(days ...int) []route.Place {
	if len(days) == 0 {
		return []route.Place{{Partition: -1, Start: route.MinTime, End: route.MaxTime}}
	}
	var list []route.Place
	for _, d := range days {
		list = append(list, route.Place{Partition: -1, Slot: -1, Start: day(d), End: day(d + 1)})
	}
	return list
}

// run runs a command on a backend and returns the reply.
func (r *rig) run(backendName, command string) bson.Document {
	r.t.Helper()
	reply, err := r.backends[backendName].Run(r.t.Context(), &backend.Request{Body: bsontest.Doc(r.t, command)})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// insert puts a document into a physical collection.
func (r *rig) insert(backendName, database, collection, doc string) {
	r.t.Helper()
	reply := r.run(backendName, fmt.Sprintf(`{"insert": %q, "$db": %q, "documents": [%s]}`, collection, database, doc))
	written, err := backend.ParseWriteReply(reply)
	if err == nil {
		err = written.Err()
	}
	if err != nil {
		r.t.Fatalf("insert into %s.%s: %v", database, collection, err)
	}
}

// physical lists the physical collections of a database on a backend.
func (r *rig) physical(backendName, database string) []string {
	r.t.Helper()
	list, err := deployment{backendName, r.backends[backendName]}.collections(r.t.Context(), database)
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// indexes lists the names of the indexes of a physical collection.
func (r *rig) indexes(backendName, database, collection string) []string {
	r.t.Helper()
	docs, err := deployment{backendName, r.backends[backendName]}.read(r.t.Context(), database, func(dst []byte) []byte {
		return bsoncore.AppendStringElement(dst, "listIndexes", collection)
	})
	list, err := names(docs, err, "list indexes")
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// active lists the names of a collection's partitions that are routed to.
func (r *rig) active(ns string) []string {
	var list []string
	for _, p := range r.Snapshot().Collection(ns).Table.Partitions {
		list = append(list, p.Name())
	}
	return list
}

// states lists the names and states of all partitions of a collection.
func (r *rig) states(ns string) []string {
	var list []string
	for _, p := range r.Snapshot().Collection(ns).All {
		list = append(list, p.Collection+" "+p.State.String())
	}
	return list
}

func (r *rig) want(what string, got []string, want ...string) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const byDay = "collections:\n  fla.log: {time: {field: time, every: day}}\n"

func TestEnsureSurvivesRestart(t *testing.T) {
	r := newRig(t, byDay)
	if c := r.Snapshot().Collection("fla.log"); c.Created || r.Snapshot().Collection("fla.other") != nil {
		t.Errorf("%+v", c)
	}
	r.ensure("fla.log", 11, 10)
	for range 2 {
		r.want("active", r.active("fla.log"), "fla.log_20260110", "fla.log_20260111")
		r.want("physical", r.physical("local", "fla"), "log_20260110", "log_20260111")
		c := r.Snapshot().Collection("fla.log")
		if !c.Created || c.UUID == [16]byte{} || c.All[0].Start != day(10) || c.All[0].End != day(11) {
			t.Errorf("%+v", c)
		}
		if owner, p := r.Snapshot().Physical("local", "fla", "log_20260111"); owner != c || p.Start != day(11) {
			t.Errorf("the physical collection belongs to %v, %v", owner, p)
		}
		if owner, _ := r.Snapshot().Physical("local", "fla", "log"); owner != nil {
			t.Errorf("a plain name belongs to %v", owner)
		}
		r.open(byDay)
	}
}

func TestMakingCutShortIsFinished(t *testing.T) {
	const both = "collections:\n  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 3}}\n"
	for _, cut := range []struct{ command, part string }{
		{"create", "log_20260110_1"},
		{"createIndexes", "log_20260110_2"},
		{"update", "active"},
	} {
		r := newRig(t, both)
		if _, _, err := r.CreateIndexes(t.Context(), "fla.log", []bson.Document{bsontest.Doc(t, `{"key": {"dev": 1}, "name": "dev_1"}`)}); err != nil {
			t.Fatal(err)
		}
		r.backends["local"].failOn(cut.command, cut.part)
		if _, err := r.Ensure(t.Context(), "fla.log", places(10)); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("%s: %v", cut.command, err)
		}
		r.want(cut.command+" cut short", r.active("fla.log"))
		r.backends["local"].failOn("", "")
		r.open(both)
		r.want(cut.command+", finished", r.states("fla.log"), "log_20260110_0 active", "log_20260110_1 active", "log_20260110_2 active")
		for _, name := range r.physical("local", "fla") {
			r.want("indexes of "+name, r.indexes("local", "fla", name), "_id_", "dev_1")
		}
	}
}

// Without a restart the next writer finishes what another one's failed attempt left.
func TestNextEnsureFinishes(t *testing.T) {
	r := newRig(t, byDay)
	r.backends["local"].failOn("create", "log_")
	if _, err := r.Ensure(t.Context(), "fla.log", places(10)); !errors.Is(err, backend.ErrUnavailable) {
		t.Fatal(err)
	}
	r.want("cut short", r.states("fla.log"), "log_20260110 creating")
	r.backends["local"].failOn("", "")
	r.ensure("fla.log", 10)
	r.want("finished", r.states("fla.log"), "log_20260110 active")
}

func TestDropCutShortIsFinished(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10, 11)
	r.backends["local"].failOn("drop", "log_20260110")
	if err := r.DropPartition(t.Context(), "fla.log", "fla.log_20260110"); !errors.Is(err, backend.ErrUnavailable) {
		t.Fatal(err)
	}
	r.want("cut short", r.states("fla.log"), "log_20260110 dropping", "log_20260111 active")
	r.backends["local"].failOn("", "")
	r.open(byDay)
	r.want("finished", r.states("fla.log"), "log_20260111 active")
	r.want("physical", r.physical("local", "fla"), "log_20260111")

	// A drop of the whole collection, cut off between its record and its partitions.
	r.backends["local"].failOn("update", "dropping")
	if _, err := r.Drop(t.Context(), "fla.log"); !errors.Is(err, backend.ErrUnavailable) {
		t.Fatal(err)
	}
	r.backends["local"].failOn("", "")
	r.open(byDay)
	r.want("all dropped", r.states("fla.log"))
	r.want("physical", r.physical("local", "fla"))
}

func TestOpenRefusesContradictions(t *testing.T) {
	const text = "collections:\n  fla.log: {time: {field: time, every: day, unit: s}, hash: {field: dev, count: 2}}\n"
	r := newRig(t, text)
	r.ensure("fla.log", 10)
	for name, changed := range map[string]string{
		"hash.count":                     strings.Replace(text, "count: 2", "count: 4", 1),
		"time.unit":                      strings.Replace(text, "unit: s", "unit: ms", 1),
		"time.field":                     strings.Replace(text, "field: time", "field: at", 1),
		"the entry can't be removed":     "listen: 127.0.0.1:27017\n",
		"a hash layout can't be added":   "collections:\n  fla.log: {time: {field: time, every: day, unit: s}}\n",
		"log_20260110_0 lies on backend": strings.Replace(text, "collections", "backends: {other: {embedded: d}}\ncollections", 1),
	} {
		if strings.Contains(changed, "other") {
			r.backends["other"] = r.backends["local"]
			delete(r.backends, "local")
		}
		if err := r.tryOpen(changed); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if b, ok := r.backends["other"]; ok {
			r.backends["local"] = b
			delete(r.backends, "other")
		}
	}
	r.open(text)
	r.want("intact", r.active("fla.log"), "fla.log_20260110_0", "fla.log_20260110_1")
}

func TestOpenRefusesPlainDocuments(t *testing.T) {
	r := newRig(t, "listen: 127.0.0.1:27017\n")
	r.run("local", `{"create": "log", "$db": "fla"}`)
	r.open(byDay) // empty
	r.insert("local", "fla", "log", `{"_id": 1}`)
	if err := r.tryOpen(byDay); err == nil || !strings.Contains(err.Error(), "fla.log") || !strings.Contains(err.Error(), "has documents") {
		t.Errorf("%v", err)
	}
}

func TestStray(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10)
	for _, name := range []string{"log_20260109", "log_20260110_2", "log_2026", "logs_20260110"} {
		r.run("local", fmt.Sprintf(`{"create": %q, "$db": "fla"}`, name))
	}
	r.open(byDay)
	var got []string
	for _, ns := range r.Stray() {
		got = append(got, ns.String())
	}
	slices.Sort(got)
	r.want("stray", got, "fla.log_20260109", "fla.log_20260110_2")
}
