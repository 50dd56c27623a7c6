package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/config"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Writers of one new range make it once, while others read snapshots and index commands run.
func TestConcurrentEnsure(t *testing.T) {
	r := newRig(t, "collections:\n  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 4}}\n")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			s, err := r.Ensure(t.Context(), "fla.log", places(10+i%2, 12))
			if err != nil {
				t.Errorf("ensure: %v", err)
				return
			}
			if p := s.Collection("fla.log").Table.At(3, day(12)); p.Partition < 0 {
				t.Errorf("the snapshot that Ensure returned lacks the place: %+v", p)
			}
		})
	}
	group.Go(func() {
		if _, _, err := r.CreateIndexes(t.Context(), "fla.log", []bson.Document{bsontest.Doc(t, `{"key": {"a": 1}, "name": "a_1"}`)}); err != nil {
			t.Errorf("create indexes: %v", err)
		}
	})
	group.Wait()
	if n := len(r.Snapshot().Collection("fla.log").All); n != 12 {
		t.Errorf("%d partitions: %q", n, r.states("fla.log"))
	}
	for _, p := range r.Snapshot().Collection("fla.log").Table.Partitions {
		r.want("indexes of "+p.Name(), r.indexes("local", "fla", p.Collection), "_id_", "a_1")
	}
}

func TestNamesAreNeverUsedTwice(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10, 11)
	drop := func(name string) {
		t.Helper()
		if err := r.DropPartition(t.Context(), "fla.log", name); err != nil {
			t.Fatal(err)
		}
	}
	drop("fla.log_20260110")
	r.open(byDay)
	r.ensure("fla.log", 10, 12)
	r.want("made again", r.active("fla.log"), "fla.log_20260110_2", "fla.log_20260111", "fla.log_20260112")
	drop("fla.log_20260110_2")
	r.ensure("fla.log", 10)
	r.want("and again", r.active("fla.log"), "fla.log_20260110_3", "fla.log_20260111", "fla.log_20260112")
	if found, err := r.Drop(t.Context(), "fla.log"); !found || err != nil {
		t.Fatal(found, err)
	}
	r.open(byDay)
	r.ensure("fla.log", 11, 13)
	r.want("after a drop of all", r.active("fla.log"), "fla.log_20260111_4", "fla.log_20260113")
}

// A collection that a person made under a partition's name stays theirs, with documents or without.
func TestForeignCollectionIsLeftAlone(t *testing.T) {
	const both = "collections:\n  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 2}}\n"
	for _, c := range []struct{ layout, name, partitions string }{
		{byDay, "log_20260110", "fla.log_20260110_2"},
		{both, "log_20260110_1", "fla.log_20260110_0_2 fla.log_20260110_1_2"},
	} {
		for _, documents := range []int{1, 0} {
			r := newRig(t, c.layout)
			r.run("local", fmt.Sprintf(`{"create": %q, "$db": "fla"}`, c.name))
			r.run("local", fmt.Sprintf(`{"createIndexes": %q, "indexes": [{"key": {"a": 1}, "name": "mine"}], "$db": "fla"}`, c.name))
			if documents > 0 {
				r.insert("local", "fla", c.name, `{"_id": "mine"}`)
			}
			r.ensure("fla.log", 10)
			for range 2 {
				r.want("made elsewhere", r.active("fla.log"), strings.Fields(c.partitions)...)
				r.want("its indexes", r.indexes("local", "fla", c.name), "_id_", "mine")
				if there, err := (deployment{"local", r.backends["local"]}).holdsDocuments(t.Context(), "fla", c.name); there != (documents > 0) || err != nil {
					t.Errorf("documents: %v, %v", there, err)
				}
				r.open(c.layout)
			}
			if found, err := r.Drop(t.Context(), "fla.log"); !found || err != nil {
				t.Fatal(found, err)
			}
			r.want("after a drop of the collection", r.physical("local", "fla"), c.name)
		}
	}
}

// An index that is dropped while a partition is being made is not on it in the end, whatever the making had done by then.
func TestIndexDroppedWhileMaking(t *testing.T) {
	for name, finish := range map[string]func(*rig){
		"the next writer": func(r *rig) { r.ensure("fla.log", 11) },
		"a sweep": func(r *rig) {
			if err := r.Sweep(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		},
		"a restart": func(r *rig) { r.open(byDay) },
	} {
		r := newRig(t, byDay)
		r.ensure("fla.log", 10)
		spec := bsontest.Doc(t, `{"key": {"a": 1}, "name": "a_1"}`)
		if _, _, err := r.CreateIndexes(t.Context(), "fla.log", []bson.Document{spec}); err != nil {
			t.Fatal(err)
		}
		r.backends["local"].failOn("update", "active") // the partition is there with its index, and not known to be
		if _, err := r.Ensure(t.Context(), "fla.log", places(11)); err == nil {
			t.Fatal("the making was not cut short")
		}
		r.backends["local"].failOn("", "")
		if _, err := r.DropIndexes(t.Context(), "fla.log", text("a_1")); err != nil {
			t.Fatal(err)
		}
		finish(r)
		r.want(name, r.active("fla.log"), "fla.log_20260110", "fla.log_20260111")
		for _, p := range r.physical("local", "fla") {
			r.want(name+": indexes of "+p, r.indexes("local", "fla", p), "_id_")
		}
	}
}

func TestDatabasePerRange(t *testing.T) {
	const text = "collections:\n  fla.a: {time: {field: t, every: day, as: database}}\n  fla.b: {time: {field: t, every: day, as: database}, hash: {field: u, count: 2}}\n"
	r := newRig(t, text)
	r.ensure("fla.a", 10)
	r.ensure("fla.b", 10)
	r.want("physical", r.physical("local", "fla_20260110"), "a", "b_0", "b_1")
	if err := r.DropPartition(t.Context(), "fla.a", "fla_20260110.a"); err != nil {
		t.Fatal(err)
	}
	r.want("the others stay", r.physical("local", "fla_20260110"), "b_0", "b_1")
	if _, err := r.Drop(t.Context(), "fla.b"); err != nil {
		t.Fatal(err)
	}
	databases, err := deployment{"local", r.backends["local"]}.databases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range databases {
		if strings.HasPrefix(name, "fla_") {
			t.Errorf("database %s is still there", name)
		}
	}
}

func TestOverSeveralBackends(t *testing.T) {
	const text = `
backends: {one: {embedded: a}, two: {embedded: b}}
databases: {"*": one}
collections:
  fla.slots: {hash: {field: u, count: 4}, over: [one, two]}
  fla.days:  {time: {field: t, every: day}, over: [two, one]}
`
	r := newRig(t, text)
	if _, err := r.Create(t.Context(), "fla.slots", nil); err != nil {
		t.Fatal(err)
	}
	r.ensure("fla.days", 10, 11, 12)
	r.want("on one", r.physical("one", "fla"), "days_20260111", "slots_0", "slots_2")
	r.want("on two", r.physical("two", "fla"), "days_20260110", "days_20260112", "slots_1", "slots_3")
	r.want("catalog", r.physical("one", config.DefaultCatalog), "collections", "partitions")
	if len(r.physical("two", config.DefaultCatalog)) > 0 {
		t.Errorf("the second backend has a catalog: %q", r.physical("two", config.DefaultCatalog))
	}
}

func TestCreateAndDrop(t *testing.T) {
	r := newRig(t, "collections:\n  fla.slots: {hash: {field: u, count: 2}}\n  fla.days: {time: {field: t, every: day}}\n  im.days: {time: {field: t, every: day}}\n")
	if found, err := r.Drop(t.Context(), "fla.slots"); found || err != nil {
		t.Errorf("a drop of nothing: %v, %v", found, err)
	}
	for range 2 {
		if _, err := r.Create(t.Context(), "fla.slots", bsontest.Doc(t, `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	r.want("slots", r.active("fla.slots"), "fla.slots_0", "fla.slots_1")
	if _, err := r.Create(t.Context(), "fla.slots", bsontest.Doc(t, `{"validator": {"a": 1}}`)); !mongoerr.Is(err, mongoerr.NamespaceExists) {
		t.Errorf("other options: %v", err)
	}
	if _, err := r.Create(t.Context(), "fla.none", nil); !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		t.Errorf("no layout: %v", err)
	}
	if s, err := r.Create(t.Context(), "fla.days", nil); err != nil || !s.Collection("fla.days").Created || len(s.Collection("fla.days").All) > 0 {
		t.Errorf("%v", err)
	}
	r.ensure("fla.days", 10)
	r.ensure("im.days", 10)
	if err := r.DropDatabase(t.Context(), "fla"); err != nil {
		t.Fatal(err)
	}
	r.want("fla", r.physical("local", "fla"))
	r.want("im", r.physical("local", "im"), "days_20260110")
	if c := r.Snapshot().Collection("fla.slots"); c.Created {
		t.Errorf("%+v", c)
	}
}

func TestHideAndUndo(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10, 11)
	const name = "fla.log_20260110"
	if err := r.Undo(t.Context(), "fla.log", name); !mongoerr.Is(err, mongoerr.IllegalOperation) {
		t.Errorf("undo of what is active: %v", err)
	}
	r.now = r.now.Add(time.Hour)
	if err := r.Hide(t.Context(), "fla.log", name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.want("routed to", r.active("fla.log"), "fla.log_20260111")
		r.want("all", r.states("fla.log"), "log_20260110 hidden", "log_20260111 active")
		if p := r.Snapshot().Collection("fla.log").Partition(name); p.Since != r.now.UnixMilli() {
			t.Errorf("hidden since %d", p.Since)
		}
		r.open(byDay)
	}
	if err := r.Hide(t.Context(), "fla.log", name); !mongoerr.Is(err, mongoerr.IllegalOperation) {
		t.Errorf("hiding what is hidden: %v", err)
	}
	if err := r.Hide(t.Context(), "fla.log", "fla.nothing"); !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		t.Errorf("hiding nothing: %v", err)
	}
	// A late document's partition beside the hidden one, then both.
	r.ensure("fla.log", 10)
	r.want("beside", r.active("fla.log"), "fla.log_20260110_2", "fla.log_20260111")
	if err := r.Undo(t.Context(), "fla.log", name); err != nil {
		t.Fatal(err)
	}
	r.want("undone", r.active("fla.log"), name, "fla.log_20260110_2", "fla.log_20260111")
	c := r.Snapshot().Collection("fla.log")
	if !c.Partition(name).Restored {
		t.Error("a partition that came back is not marked")
	}
	if p := c.Table.At(-1, day(10)); c.Table.Partitions[p.Partition].Generation != 2 {
		t.Errorf("documents are placed in %+v", p)
	}
}

func TestReload(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10)
	refused := func(text, want string) {
		t.Helper()
		before := r.Snapshot()
		if err := r.Reload(t.Context(), parsed(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if r.Snapshot() != before {
			t.Error("a refused reload changed the catalog")
		}
	}
	refused("listen: 127.0.0.1:27017\n", "can't be removed")
	refused(strings.Replace(byDay, "field: time", "field: at", 1), "time.field")
	r.insert("local", "fla", "old", `{"_id": 1}`)
	refused(byDay+"  fla.old: {hash: {field: u}}\n", "has documents")

	err := r.Reload(t.Context(), parsed(t, strings.Replace(byDay, "every: day}", "every: day}, keep: 7d, hold: 5m, late: recreate", 1)+"  fla.new: {hash: {field: u, count: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Snapshot().Collection("fla.log")
	if l := c.Table.Layout.Time; l.Keep != 7*24*time.Hour || l.Late != route.Recreate || c.Hold != 5*time.Minute || len(c.Table.Partitions) != 1 {
		t.Errorf("%+v, %+v", c, l)
	}
	r.ensure("fla.new")
	r.want("new", r.active("fla.new"), "fla.new_0", "fla.new_1")
	if _, err := r.Drop(t.Context(), "fla.new"); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context(), parsed(t, byDay)); err != nil {
		t.Fatalf("remove an entry without partitions: %v", err)
	}
	if _, err := r.Ensure(t.Context(), "fla.new", places()); !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		t.Errorf("%v", err)
	}
	// An entry that comes back goes on where its names ended.
	if err := r.Reload(t.Context(), parsed(t, byDay+"  fla.new: {hash: {field: u, count: 1}}\n")); err != nil {
		t.Fatal(err)
	}
	r.ensure("fla.new")
	r.want("back", r.active("fla.new"), "fla.new_0_2")
}

// Another length of cells applies to ranges that are not made, and their names meet none that were used.
func TestReloadOfCells(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 6, 7)
	week := strings.Replace(byDay, "day", "week", 1)
	if err := r.Reload(t.Context(), parsed(t, week)); err != nil {
		t.Fatal(err)
	}
	r.ensure("fla.log", 5, 9, 12) // Monday the 5th is before the days that are made, the 9th behind them
	for range 2 {
		r.want("cells", r.active("fla.log"), "fla.log_20260105_2", "fla.log_20260106", "fla.log_20260107", "fla.log_20260108_3", "fla.log_20260112_4")
		last := int64(0)
		for _, p := range r.Snapshot().Collection("fla.log").Table.Partitions {
			if last != 0 && p.Start != last {
				t.Errorf("%s starts at %d, the one before ends at %d", p.Name(), p.Start, last)
			}
			last = p.End
		}
		r.open(week)
	}
}

func TestEnsureGivesUpWithItsClient(t *testing.T) {
	r := newRig(t, byDay)
	g, err := r.gate("fla.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.changes.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Ensure(ctx, "fla.log", places(10)); !errors.Is(err, ctx.Err()) {
		t.Errorf("%v", err)
	}
	g.changes.release()
	r.ensure("fla.log", 10)
}

func TestIndexes(t *testing.T) {
	r := newRig(t, "collections:\n  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 2}}\n")
	create := func(specs ...string) (int, error) {
		var list []bson.Document
		for _, s := range specs {
			list = append(list, bsontest.Doc(t, s))
		}
		created, outcomes, err := r.CreateIndexes(t.Context(), "fla.log", list)
		for _, target := range outcomes {
			err = errors.Join(err, target.Err)
		}
		return created, err
	}
	listed := func() []string { return indexNames(r.Snapshot().Collection("fla.log").Indexes) }
	const dev = `{"v": 2, "key": {"dev": 1, "time": 1}, "name": "dev_time"}`
	if n, err := create(dev, `{"key": {"_id": 1}, "name": "_id_"}`); n != 1 || err != nil || !r.Snapshot().Collection("fla.log").Created {
		t.Fatal(n, err)
	}
	r.ensure("fla.log", 10)
	if n, err := create(dev, `{"key": {"a": 1}, "name": "a_1"}`); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.ensure("fla.log", 11)
	for _, p := range r.Snapshot().Collection("fla.log").All {
		r.want("indexes of "+p.Name(), r.indexes("local", "fla", p.Collection), "_id_", "a_1", "dev_time")
	}
	for _, c := range []struct {
		spec string
		code mongoerr.Code
	}{
		{`{"key": {"dev": 1}, "name": "u", "unique": true}`, mongoerr.CannotCreateIndex},
		{`{"key": {"time": 1, "x": 1}, "name": "u", "unique": true}`, mongoerr.CannotCreateIndex},
		{`{"key": {"b": 1}, "name": "a_1"}`, mongoerr.IndexKeySpecsConflict},
		{`{"key": {"a": 1}, "name": "a_1", "sparse": true}`, mongoerr.IndexOptionsConflict},
		{`{"key": {"a": 1}, "name": "other"}`, mongoerr.IndexOptionsConflict},
		{`{"key": {"b": "nonsense"}, "name": "b"}`, mongoerr.CannotCreateIndex},
	} {
		if _, err := create(c.spec); !mongoerr.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", c.spec, err, c.code)
		}
	}
	r.want("list", listed(), "dev_time", "a_1")
	r.want("the trials are gone", r.physical("local", config.DefaultCatalog), "collections", "partitions")

	// A duplicate takes a new unique index back.
	r.insert("local", "fla", "log_20260110_0", `{"_id": 1, "dev": 2, "time": 5}`)
	r.insert("local", "fla", "log_20260110_0", `{"_id": 2, "dev": 2, "time": 5}`)
	const unique = `{"key": {"time": 1, "dev": 1}, "name": "u", "unique": true}`
	if _, err := create(unique); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Errorf("duplicates: %v", err)
	}
	r.want("list", listed(), "dev_time", "a_1")
	r.want("taken back", r.indexes("local", "fla", "log_20260110_1"), "_id_", "a_1", "dev_time")

	// A partition that fails is resumed by the same command.
	r.backends["local"].failOn("createIndexes", "log_20260111_1")
	if n, err := create(`{"key": {"c": 1}, "name": "c_1"}`); n != 1 || !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("%d, %v", n, err)
	}
	r.backends["local"].failOn("", "")
	if n, err := create(`{"key": {"c": 1}, "name": "c_1"}`); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	r.want("resumed", r.indexes("local", "fla", "log_20260111_1"), "_id_", "a_1", "c_1", "dev_time")

	for _, c := range []struct {
		index string
		code  mongoerr.Code
	}{
		{`"_id_"`, mongoerr.InvalidOptions}, {`{"_id": 1}`, mongoerr.InvalidOptions},
		{`"nothing"`, mongoerr.IndexNotFound}, {`["c_1", "nothing"]`, mongoerr.IndexNotFound}, {`{"z": 1}`, mongoerr.IndexNotFound},
		{`5`, mongoerr.TypeMismatch}, {`[5]`, mongoerr.TypeMismatch},
	} {
		if _, err := r.DropIndexes(t.Context(), "fla.log", bsontest.Value(t, c.index)); !mongoerr.Is(err, c.code) {
			t.Errorf("drop %s: %v, want %s", c.index, err, c.code)
		}
	}
	r.want("list", listed(), "dev_time", "a_1", "c_1")
	for _, step := range []struct {
		index string
		left  []string
	}{
		{`"c_1"`, []string{"dev_time", "a_1"}}, {`{"dev": 1.0, "time": 1}`, []string{"a_1"}}, {`"*"`, nil},
	} {
		if _, err := r.DropIndexes(t.Context(), "fla.log", bsontest.Value(t, step.index)); err != nil {
			t.Errorf("drop %s: %v", step.index, err)
		}
		r.want("list", listed(), step.left...)
	}
	r.want("dropped", r.indexes("local", "fla", "log_20260111_1"), "_id_")
}

// waiting is a context that tells when somebody begins to wait with it.
type waiting struct {
	context.Context
	waits chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	select {
	case w.waits <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// TestReloadTakesWhatIsWaitedFor: what waits for a collection's changes while its entry goes from the configuration is told so.
func TestReloadTakesWhatIsWaitedFor(t *testing.T) {
	const other = "collections:\n  fla.other: {hash: {field: u, count: 2}}\n"
	for name, change := range map[string]func(r *rig, ctx context.Context) error{
		"ensure": func(r *rig, ctx context.Context) error { _, err := r.Ensure(ctx, "fla.log", places(10)); return err },
		"create": func(r *rig, ctx context.Context) error { _, err := r.Create(ctx, "fla.log", nil); return err },
		"hide":   func(r *rig, ctx context.Context) error { return r.Hide(ctx, "fla.log", "fla.log260110") },
		"drop":   func(r *rig, ctx context.Context) error { _, err := r.Drop(ctx, "fla.log"); return err },
		"index": func(r *rig, ctx context.Context) error {
			_, _, err := r.CreateIndexes(ctx, "fla.log", []bson.Document{bsontest.Doc(t, `{"key": {"a": 1}, "name": "a_1"}`)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, byDay)
			g, err := r.gate("fla.log")
			if err != nil {
				t.Fatal(err)
			}
			release, err := acquireAll(t.Context(), g.indexing, g.changes)
			if err != nil {
				t.Fatal(err)
			}
			ctx := waiting{t.Context(), make(chan struct{}, 1)}
			changed := make(chan error, 1)
			go func() { changed <- change(r, ctx) }()
			<-ctx.waits
			old, next := r.Snapshot(), parsed(t, other)
			without, unlisted, err := r.reconfigured(t.Context(), old, next)
			if err != nil || !r.replace(old, without, unlisted, next) {
				t.Fatalf("the configuration was not applied: %v", err)
			}
			release()
			if err := <-changed; !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				t.Errorf("%v", err)
			}
		})
	}
}
