package partition

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/catalog"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// rig is a Runner over a catalog on a real embedded backend in memory, on virtual time.
type rig struct {
	t         *testing.T
	text      string
	run       *embedded.Backend
	wall      time.Time
	monotonic time.Duration
	backend   func() (time.Time, error)
	*catalog.Catalog
	*Runner
}

const ns = "fla.log"

func newRig(t *testing.T, text string) *rig {
	t.Helper()
	run, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
	if err != nil {
		t.Fatalf("open the backend: %v", err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Errorf("close the backend: %v", err)
		}
	})
	r := &rig{t: t, text: "collections:\n  fla.log: " + text + "\n", run: run, wall: time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)}
	r.restart()
	return r
}

// restart opens catalog and Runner again: monotonic time begins anew, what is in memory only is forgotten.
func (r *rig) restart() {
	r.t.Helper()
	cfg, err := config.Parse("oxbow.yaml", []byte(r.text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.Catalog, err = catalog.Open(r.t.Context(), catalog.Options{
		Config: cfg, Backends: map[string]backend.Backend{"local": r.run}, Now: func() time.Time { return r.wall },
	})
	if err != nil {
		r.t.Fatalf("open the catalog: %v", err)
	}
	r.monotonic = 0
	opts := Options{Catalog: r.Catalog, MaxDue: 5, Clock: func() (time.Time, time.Duration) { return r.wall, r.monotonic }}
	if r.backend != nil {
		opts.BackendTime = func(context.Context, string) (time.Time, error) { return r.backend() }
	}
	r.Runner = New(opts)
}

// pass lets time pass and makes a pass.
func (r *rig) pass(d time.Duration) []Event {
	r.t.Helper()
	r.wall, r.monotonic = r.wall.Add(d), r.monotonic+d
	events := r.Pass(r.t.Context())
	for _, e := range events {
		if e.Err != nil {
			r.t.Errorf("%+v", e)
		}
	}
	return events
}

// write makes the partition of now, as the first document in it does.
func (r *rig) write() {
	r.t.Helper()
	place := r.Snapshot().Collection(ns).Table.At(-1, r.wall.UnixMilli())
	if place.Partition >= 0 {
		return
	}
	if _, err := r.Ensure(r.t.Context(), ns, []route.Place{place}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) states() []string {
	var list []string
	for _, p := range r.Snapshot().Collection(ns).All {
		list = append(list, strings.TrimPrefix(p.Collection, "log_202601")+" "+p.State.String())
	}
	return list
}

func (r *rig) want(want ...string) {
	r.t.Helper()
	if got := r.states(); !slices.Equal(got, want) {
		r.t.Errorf("%s: %q, want %q", r.wall.Format(time.DateTime), got, want)
	}
}

// Thirty days pass by the hour, with restarts in between.
func TestThirtyDays(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 3d, hold: 6h, ahead: 2}")
	start := r.wall
	ends := map[string]int64{}
	hidden, dropped := map[string]time.Time{}, map[string]time.Time{}
	for hour := range 30 * 24 {
		r.write()
		if hour%97 == 96 {
			r.restart()
		}
		for _, e := range r.pass(time.Hour) {
			switch e.Action {
			case Hidden:
				if _, again := hidden[e.Partition]; again {
					t.Errorf("%s is hidden twice", e.Partition)
				}
				hidden[e.Partition] = r.wall
				if due := time.UnixMilli(ends[e.Partition]).Add(3 * 24 * time.Hour); r.wall.Before(due) || r.wall.Sub(due) > time.Hour {
					t.Errorf("%s is hidden at %s, due at %s", e.Partition, r.wall, due)
				}
			case Dropped:
				if _, again := dropped[e.Partition]; again {
					t.Errorf("%s is dropped twice", e.Partition)
				}
				dropped[e.Partition] = r.wall
				if held := r.wall.Sub(hidden[e.Partition]); held != 6*time.Hour {
					t.Errorf("%s is dropped %s after it was hidden", e.Partition, held)
				}
			case Stopped:
				t.Errorf("stopped: %s", e.Reason)
			}
		}
		table := r.Snapshot().Collection(ns).Table
		for _, p := range table.Partitions {
			ends[p.Name()] = p.End
		}
		for ahead := range 3 {
			if table.At(-1, r.wall.Add(time.Duration(ahead)*24*time.Hour).UnixMilli()).Partition < 0 {
				t.Fatalf("%s: the range %d ahead is not there", r.wall, ahead)
			}
		}
		// All of keep is there, as far back as there was anything.
		for back := range 4 {
			at := r.wall.Add(-time.Duration(back) * 24 * time.Hour)
			if !at.Before(start) && r.wall.Sub(at) <= 3*24*time.Hour && table.At(-1, at.UnixMilli()).Partition < 0 {
				t.Fatalf("%s: what was written at %s is not there", r.wall, at)
			}
		}
	}
	// The 10th of January to the 5th of February.
	if len(dropped) != 27 || len(hidden) != 27 {
		t.Errorf("%d hidden, %d dropped", len(hidden), len(dropped))
	}
}

func TestUndoIsLasting(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, hold: 1d, ahead: 0}")
	r.write()
	r.pass(0)
	r.pass(36 * time.Hour) // the 12th, 00:00: the 10th ended at the 11th, 00:00
	r.want("10 hidden")
	if err := r.Undo(t.Context(), ns, "fla.log_20260110"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.pass(24 * time.Hour)
	}
	if !slices.Contains(r.states(), "10 active") {
		t.Errorf("what was brought back is gone: %q", r.states())
	}
	if err := r.Hide(t.Context(), ns, "fla.log_20260110"); err != nil {
		t.Fatal(err)
	}
	r.pass(23 * time.Hour)
	if !slices.Contains(r.states(), "10 hidden") {
		t.Errorf("not held: %q", r.states())
	}
	r.pass(time.Hour)
	if slices.ContainsFunc(r.states(), func(s string) bool { return strings.HasPrefix(s, "10") }) {
		t.Errorf("not dropped: %q", r.states())
	}
}

func TestClockJump(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 2d, hold: 0, ahead: 0}")
	r.write()
	r.pass(0)
	before := r.states()
	r.wall = r.wall.AddDate(0, 0, 3)
	for range 3 {
		r.pass(time.Minute)
	}
	r.want(before...)
	if why := r.Stopped(ns); !strings.Contains(why, "the clock jumped by 72h0m0s") {
		t.Errorf("stopped: %q", why)
	}
	stops := 0
	for _, e := range r.History() {
		if e.Action == Stopped {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("the stop is noted %d times", stops)
	}
	r.Confirm(ns)
	r.pass(time.Minute)
	r.want("10 hidden")
	r.pass(time.Minute)
	r.want()
	if why := r.Stopped(ns); why != "" {
		t.Errorf("still stopped: %q", why)
	}
}

// A jump while the gateway was down shows in how much is due.
func TestTooMuchDue(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 10d, hold: 0, ahead: 0}")
	for range 8 {
		r.write()
		r.pass(24 * time.Hour)
	}
	r.write()
	before := r.states()
	r.wall = r.wall.AddDate(1, 0, 0)
	r.restart()
	r.pass(0)
	r.want(before...)
	if why := r.Stopped(ns); !strings.Contains(why, "9 time ranges are due at once, more than 5") {
		t.Errorf("stopped: %q", why)
	}
	// The clock was wrong and is right again: nothing was lost.
	r.wall = r.wall.AddDate(-1, 0, 0)
	r.restart()
	r.pass(0)
	r.want(before...)
	r.wall = r.wall.AddDate(1, 0, 0)
	r.restart()
	if why := r.Confirm(ns); why != "" {
		t.Errorf("nothing had been shown, and this was confirmed: %s", why)
	}
	r.pass(0)
	r.want(before...)
	if why := r.Confirm(ns); !strings.Contains(why, "9 time ranges") {
		t.Errorf("confirmed: %q", why)
	}
	r.pass(0)
	if slices.ContainsFunc(r.states(), func(s string) bool { return !strings.HasSuffix(s, "hidden") }) {
		t.Errorf("confirmed, but %q", r.states())
	}
	r.pass(0)
	r.want()
}

// A confirmation is of what was shown: hiding and dropping it, whatever hold is, and nothing else.
func TestConfirmationCoversWhatWasShown(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, hold: 6h, ahead: 0}")
	days := func(n int) {
		for range n {
			r.write()
			r.wall, r.monotonic = r.wall.Add(24*time.Hour), r.monotonic+24*time.Hour
		}
	}
	count := func(state string) (n int) {
		for _, s := range r.states() {
			if strings.HasSuffix(s, state) {
				n++
			}
		}
		return n
	}
	days(8) // no pass was made meanwhile: 7 have been due for a while
	r.pass(0)
	if r.Confirm(ns) == "" {
		t.Fatal("more than may be were not stopped")
	}
	r.pass(0)
	if n := count("hidden"); n != 7 {
		t.Errorf("%d hidden: %q", n, r.states())
	}
	r.pass(5 * time.Hour)
	if n := count("hidden"); n != 7 {
		t.Errorf("not held: %q", r.states())
	}
	r.pass(time.Hour)
	if n := count("hidden"); n != 0 || r.Stopped(ns) != "" {
		t.Errorf("%d not dropped, stopped: %q", n, r.Stopped(ns))
	}

	days(8)
	r.pass(0)
	r.Confirm(ns)
	days(6) // these become due before the next pass
	r.pass(0)
	if n := count("hidden"); n != 0 || !strings.Contains(r.Stopped(ns), "6 time ranges") {
		t.Errorf("%d hidden, stopped: %q", n, r.Stopped(ns))
	}

	// What was confirmed while the clock was wrong is not confirmed any more when it is right again.
	r.Confirm(ns)
	r.wall = r.wall.AddDate(0, 0, -12)
	r.pass(0)
	if r.Confirm(ns); !strings.Contains(r.Stopped(ns), "the clock jumped") {
		t.Errorf("stopped: %q", r.Stopped(ns))
	}
	r.pass(0)
	r.wall = r.wall.AddDate(0, 0, 12)
	r.pass(0)
	r.Confirm(ns)
	r.pass(0)
	if n := count("hidden"); n > 5 || r.Stopped(ns) == "" {
		t.Errorf("%d hidden on a confirmation of the clock: %q", n, r.states())
	}
}

func TestBackendTime(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, hold: 0, ahead: 0}")
	r.write()
	behind := r.wall
	r.backend = func() (time.Time, error) { return behind, nil }
	r.restart()
	r.pass(0)
	r.pass(72 * time.Hour)
	r.want("10 active") // the backend's clock says that it is the 10th
	r.backend = func() (time.Time, error) { return time.Time{}, errors.New("no answer") }
	r.pass(time.Hour)
	r.want("10 active")
	if why := r.Stopped(ns); !strings.Contains(why, "the time of backend local is not known: no answer") {
		t.Errorf("stopped: %q", why)
	}
	r.backend = func() (time.Time, error) { return r.wall, nil }
	r.pass(time.Hour)
	r.want("10 hidden")
}

func TestRunEndsWithItsContext(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, ahead: 1}")
	r.write()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	for len(r.History()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	if e := r.History()[0]; e.Action != Made || !strings.Contains(e.Reason, "from 2026-01-11T00:00:00Z") {
		t.Errorf("%+v", e)
	}
	if e := r.Entries("fla.log")[0]; !strings.HasPrefix(e.Reason, "made: ahead of time") { // a range has no name yet
		t.Errorf("as a job %+v", e)
	}
}

// A Runner wakes when the next step is due, however long Options.Every is. This one test runs Run itself, on the virtual time of its bubble; the others
// make passes at given clocks, since the jumps that they are about can't be had there: its wall clock and monotonic time always agree.
func TestRunWakesWhenAStepIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "{time: {field: time, every: minute}, keep: 3m, hold: 0, ahead: 1}")
		r.Runner = New(Options{Catalog: r.Catalog, Every: time.Hour})
		r.wall = time.Now()
		r.write()
		first := r.Snapshot().Collection(ns).All[0]
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		time.Sleep(5*time.Minute + time.Second)
		cancel()
		<-ended
		due := time.UnixMilli(first.End).Add(3 * time.Minute)
		at := map[Action]time.Time{}
		for _, e := range r.History() {
			if e.Partition == first.Name() {
				at[e.Action] = e.At
			}
		}
		if late := at[Hidden].Sub(due); at[Hidden].IsZero() || late < 0 || late > time.Second {
			t.Errorf("hidden at %s, due at %s", at[Hidden], due)
		}
		if late := at[Dropped].Sub(due); at[Dropped].IsZero() || late < 0 || late > time.Second {
			t.Errorf("dropped at %s, due at %s", at[Dropped], due)
		}
		made := 0
		for _, e := range r.History() {
			if e.Action == Made {
				made++
			}
		}
		if made != 6 {
			t.Errorf("%d partitions were made ahead in five minutes", made)
		}
	})
}

// TestReloadWithinAPass: a collection whose entry goes from the configuration while a pass looks at it is passed over.
func TestReloadWithinAPass(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, ahead: 0}")
	if _, err := r.Create(t.Context(), ns, nil); err != nil {
		t.Fatal(err)
	}
	col := r.Snapshot().Collection(ns)
	cfg, err := config.Parse("oxbow.yaml", []byte("collections:\n  fla.other: {hash: {field: u, count: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	(&pass{Runner: r.Runner}).look(t.Context(), col)
}
