package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

// several is a number of gateways' catalogs on one server, which is the engine behind a wrapper that has no abilities, on virtual time.
type several struct {
	t        *testing.T
	server   *embedded.Backend
	gateways []*member
}

// member is one gateway's catalog, and its way to the server.
type member struct {
	*Catalog
	way  *way
	stop context.CancelFunc // ends Keep
	kept chan struct{}
}

// way is a gateway's way to the server, where commands can be met: by what is to happen before one of them is sent.
type way struct {
	backend.Backend
	meet atomic.Pointer[func(command string, body bson.Document) error]
}

func (w *way) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if meet := w.meet.Load(); meet != nil {
		name, _, _ := bson.First(req.Body)
		if err := (*meet)(name, req.Body); err != nil {
			return nil, err
		}
	}
	return w.Backend.Run(ctx, req)
}

func (w *way) Abilities() backend.Abilities { return backend.Abilities{} }

// before lets something happen once, before the first command of a name whose text holds a part.
func (w *way) before(command, part string, happen func() error) {
	var met atomic.Bool
	meet := func(name string, body bson.Document) error {
		if name == command && strings.Contains(body.String(), part) && met.CompareAndSwap(false, true) {
			return happen()
		}
		return nil
	}
	w.meet.Store(&meet)
}

// cut lets nothing through any more.
func (w *way) cut() {
	meet := func(command string, _ bson.Document) error {
		return fmt.Errorf("%s: %w", command, backend.ErrUnavailable)
	}
	w.meet.Store(&meet)
}

func (w *way) mend() { w.meet.Store(nil) }

const (
	onServer   = "backends: {r: {uri: mongodb://server}}\nlease: 10s\nlongest: 30s\ncollections:\n"
	sharedDays = onServer + "  fla.log: {time: {field: time, every: day}}\n"
	sharedBoth = onServer + "  fla.log: {time: {field: time, every: day}, hash: {field: dev, count: 3}}\n"
)

// share runs a test with gateways whose catalogs are kept, on virtual time.
func share(t *testing.T, text string, n int, test func(t *testing.T, s *several)) {
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "server", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		s := &several{t: t, server: server}
		for range n {
			s.join(text)
		}
		test(t, s)
		for _, m := range s.gateways {
			m.stop()
			<-m.kept
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// join opens one more gateway's catalog.
func (s *several) join(text string) *member {
	s.t.Helper()
	m := &member{way: &way{Backend: s.server}, kept: make(chan struct{})}
	var err error
	m.Catalog, err = Open(s.t.Context(), Options{Config: parsed(s.t, text), Backends: map[string]backend.Backend{"r": m.way}, Now: time.Now})
	if err != nil {
		s.t.Fatalf("open the catalog: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go func() {
		defer close(m.kept)
		m.Keep(ctx)
	}()
	s.gateways = append(s.gateways, m)
	return m
}

// kill ends a gateway as it stands.
func (m *member) kill() {
	m.way.cut()
	m.stop()
	<-m.kept
}

// states lists the names and states of all partitions of a collection.
func (m *member) states() string {
	var list []string
	for _, p := range m.Snapshot().Collection("fla.log").All {
		list = append(list, strings.TrimPrefix(p.Collection, "log_202601")+" "+p.State.String())
	}
	return strings.Join(list, ", ")
}

func (m *member) ensure(t *testing.T, days ...int) {
	t.Helper()
	if _, err := m.Ensure(t.Context(), "fla.log", places(days...)); err != nil {
		t.Errorf("ensure: %v", err)
	}
}

// agree waits until all gateways know the same states.
func (s *several) agree(want string) {
	s.t.Helper()
	for range 100 {
		if !slices.ContainsFunc(s.gateways, func(m *member) bool { return m.states() != want }) {
			return
		}
		time.Sleep(time.Second)
	}
	for i, m := range s.gateways {
		s.t.Errorf("gateway %d knows %q, want %q", i, m.states(), want)
	}
}

func (s *several) physical() []string {
	s.t.Helper()
	list, err := deployment{"r", s.server}.collections(s.t.Context(), "fla")
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// A change reaches the other gateways within two seconds.
func TestNewsTravels(t *testing.T) {
	share(t, sharedDays, 3, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		a.ensure(t, 10)
		time.Sleep(2 * time.Second)
		if got := b.states(); got != "10 active" {
			t.Errorf("another gateway knows %q", got)
		}
		if err := b.Hide(t.Context(), "fla.log", "fla.log_20260110"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := a.states(); got != "10 hidden" {
			t.Errorf("another gateway knows %q", got)
		}
		if err := a.Undo(t.Context(), "fla.log", "fla.log_20260110"); err != nil {
			t.Fatal(err)
		}
		s.agree("10 active")
		if found, err := b.Drop(t.Context(), "fla.log"); !found || err != nil {
			t.Fatal(found, err)
		}
		s.agree("")
		if left := s.physical(); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// Until every gateway reads a partition it is written to through none.
func TestNobodyWritesWhatSomebodyDoesNotRead(t *testing.T) {
	share(t, sharedDays, 3, func(t *testing.T, s *several) {
		a, b, c := s.gateways[0], s.gateways[1], s.gateways[2]
		stuck := make(chan struct{})
		c.way.before("find", "partitions", func() error { <-stuck; return nil }) // the news is slow to come to c
		made := make(chan struct{})
		go func() {
			defer close(made)
			a.ensure(t, 10)
		}()
		time.Sleep(5 * time.Second)
		if got := c.states(); got != "" {
			t.Errorf("c knows %q", got)
		}
		for name, m := range map[string]*member{"a": a, "b": b} {
			table := m.Snapshot().Collection("fla.log").Table
			if len(table.Partitions) != 1 || table.At(-1, day(10)).Partition >= 0 {
				t.Errorf("%s: %s, to be written to: %d", name, m.states(), table.At(-1, day(10)).Partition)
			}
		}
		close(stuck)
		<-made
		if got := c.states(); got != "10 creating" && got != "10 active" {
			t.Errorf("made, and c knows %q", got)
		}
		s.agree("10 active")
	})
}

// Who can't reach the catalog stops serving, and takes part again with all of the news.
func TestLease(t *testing.T) {
	share(t, sharedDays, 2, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		id := b.members.self()
		b.way.cut()
		time.Sleep(8 * time.Second)
		if err := b.Check(); err != nil {
			t.Errorf("before the lease has run out: %v", err)
		}
		time.Sleep(3 * time.Second)
		if err := b.Check(); !mongoerr.Is(err, mongoerr.PrimarySteppedDown) {
			t.Errorf("after it has: %v", err)
		}
		if _, err := b.Ensure(t.Context(), "fla.log", places(11)); err == nil {
			t.Error("it makes partitions")
		}
		a.ensure(t, 10) // waits for b's lease to be ended
		if a.members.live(id) {
			t.Error("b's lease was not ended")
		}
		b.way.mend()
		time.Sleep(2 * time.Second)
		if err := b.Check(); err != nil {
			t.Errorf("mended: %v", err)
		}
		if b.members.self() == id {
			t.Error("it goes on under an id whose lease was ended")
		}
		s.agree("10 active")
	})
}

// What a gateway began before it ended is finished by another, once its lease has ended and not before.
func TestAnotherFinishes(t *testing.T) {
	for name, c := range map[string]struct{ command, part, want string }{
		"recorded":      {"insert", "creating", "10_0 active, 10_1 active, 10_2 active"},
		"stored":        {"create", "log_20260110_1", "10_0 active, 10_1 active, 10_2 active"},
		"made":          {"update", "active", "10_0 active, 10_1 active, 10_2 active"},
		"to be dropped": {"update", "dropping", ""},
		"marked":        {"drop", "log_20260110_1", ""},
		"dropped":       {"delete", "log_20260110", ""},
		"brought back":  {"update", "returning", "10_0 active, 10_1 hidden, 10_2 active"},
		"coming back":   {"update", "active", "10_0 active, 10_1 active, 10_2 active"},
	} {
		t.Run(name, func(t *testing.T) {
			share(t, sharedBoth, 3, func(t *testing.T, s *several) {
				a, b := s.gateways[0], s.gateways[1]
				began := time.Now()
				dies := func() error {
					began = time.Now()
					go a.kill()
					return backend.ErrUnavailable
				}
				do := func() { a.Ensure(t.Context(), "fla.log", places(10)) }
				switch {
				case c.want == "":
					a.ensure(t, 10)
					do = func() { a.Drop(t.Context(), "fla.log") }
				case strings.HasSuffix(name, "back"):
					a.ensure(t, 10)
					if err := a.Hide(t.Context(), "fla.log", "fla.log_20260110_1"); err != nil {
						t.Fatal(err)
					}
					do = func() { a.Undo(t.Context(), "fla.log", "fla.log_20260110_1") }
				}
				a.way.before(c.command, c.part, dies)
				do() // fails
				<-a.kept
				s.gateways = s.gateways[1:]
				for range 10 {
					if err := b.Sweep(t.Context()); err != nil {
						t.Errorf("sweep: %v", err)
					}
					if took := time.Since(began); took < 10*time.Second && b.states() != "" && b.states() == c.want && name != "brought back" {
						t.Errorf("finished after %s", took)
					}
					time.Sleep(5 * time.Second)
				}
				s.agree(c.want)
				if c.want == "" && len(s.physical()) > 0 {
					t.Errorf("left: %q", s.physical())
				}
				if c.want != "" {
					b.ensure(t, 11)
				}
			})
		})
	}
}

// An insert that is under way keeps its partition from being dropped, whichever gateway has sent it.
func TestDropWaitsForInserts(t *testing.T) {
	share(t, sharedDays, 2, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		a.ensure(t, 10)
		s.agree("10 active")
		ns := backend.Namespace{Database: "fla", Collection: "log_20260110"}
		sending, err := b.Begin("fla.log", "r", ns)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.DropPartition(t.Context(), "fla.log", ns.String()); err != nil {
			t.Fatal(err)
		}
		s.agree("10 dropping")
		if _, err := b.Begin("fla.log", "r", ns); !mongoerr.Is(err, mongoerr.StaleConfig) {
			t.Errorf("another insert: %v", err)
		}
		time.Sleep(time.Minute)
		if got := s.physical(); len(got) != 1 {
			t.Errorf("%q while an insert is under way", got)
		}
		sending.End(false) // it may still run: for 30 seconds at most
		time.Sleep(25 * time.Second)
		if got := s.physical(); len(got) != 1 {
			t.Errorf("%q while an insert may be under way", got)
		}
		s.agree("")
		if got := s.physical(); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
		if _, err := b.Begin("fla.log", "r", ns); !mongoerr.Is(err, mongoerr.StaleConfig) {
			t.Errorf("another insert: %v", err)
		}
	})
}

// What a gateway had under way when it ended keeps partitions from being dropped for its lease and the longest time of an insert.
func TestDropWaitsForTheDead(t *testing.T) {
	share(t, sharedDays, 2, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		a.ensure(t, 10)
		s.agree("10 active")
		b.kill()
		s.gateways = s.gateways[:1]
		died := time.Now()
		if err := a.DropPartition(t.Context(), "fla.log", "fla.log_20260110"); err != nil {
			t.Fatal(err)
		}
		for len(s.physical()) > 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(died); took < 40*time.Second || took > time.Minute {
			t.Errorf("dropped after %s", took)
		}
	})
}

// The gateways make the same ranges at the same time, and each is made once.
func TestConcurrentGateways(t *testing.T) {
	share(t, sharedBoth, 3, func(t *testing.T, s *several) {
		done := make(chan struct{})
		for i := range 6 {
			go func() {
				s.gateways[i%3].ensure(t, 10+i%2, 12)
				done <- struct{}{}
			}()
		}
		for range 6 {
			<-done
		}
		var want []string
		for _, d := range []int{10, 11, 12} {
			for slot := range 3 {
				want = append(want, fmt.Sprintf("%d_%d active", d, slot))
			}
		}
		s.agree(strings.Join(want, ", "))
		if got := s.physical(); len(got) != 9 {
			t.Errorf("%q", got)
		}
	})
}

func TestIndexesOnEveryGateway(t *testing.T) {
	share(t, sharedDays, 2, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		a.ensure(t, 10)
		// b makes a partition by the old list while a adds an index.
		indexed := make(chan struct{})
		b.way.before("update", "active", func() error {
			go func() {
				defer close(indexed)
				if _, _, err := a.CreateIndexes(t.Context(), "fla.log", []bson.Document{bsontest.Doc(t, `{"key": {"a": 1}, "name": "a_1"}`)}); err != nil {
					t.Errorf("create an index: %v", err)
				}
			}()
			time.Sleep(500 * time.Millisecond)
			return nil
		})
		b.ensure(t, 11)
		<-indexed
		for _, name := range s.physical() {
			specs, err := deployment{"r", s.server}.indexes(t.Context(), "fla", name)
			if list, err := names(specs, err, "list"); err != nil || !slices.Contains(list, "a_1") {
				t.Errorf("indexes of %s: %q, %v", name, list, err)
			}
		}
		s.agree("10 active, 11 active")
		time.Sleep(2 * time.Second)
		if b.Snapshot().Collection("fla.log").record.indexing {
			t.Error("still under way")
		}
	})
}
