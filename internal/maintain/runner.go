package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oxbow/internal/catalog"
	"oxbow/internal/retention"
	"oxbow/internal/route"
)

// Runner looks after the partitions of a catalog.
type Runner struct {
	opts Options

	passing sync.Mutex // one pass at a time; held over I/O

	mu struct {
		sync.Mutex
		history []Event
		states  map[string]*state // by namespace
	}
}

// state is what a Runner remembers of a collection.
type state struct {
	since     *retention.Reading // the clocks that later readings are compared with; nil: the next reading
	stopped   string
	waiting   []route.Partition // what is due and waits for a confirmation
	confirmed map[string]bool   // partitions, by Name, as in retention.Input
}

// Options are what a Runner needs.
type Options struct {
	Catalog *catalog.Catalog
	Log     *slog.Logger
	Every   time.Duration // between two passes at most: one is made earlier when something becomes due; 0: 10 s
	MaxDue  int           // most time ranges due at once without a confirmation; 0: 64
	// BackendTime returns a backend's idea of now, or an error; nil: the wall clock alone counts.
	BackendTime func(ctx context.Context, backend string) (time.Time, error)
	// Clock returns the wall clock and monotonic time since some fixed moment; nil: this machine's.
	Clock func() (wall time.Time, monotonic time.Duration)
}

// The defaults of Options.
const (
	defaultEvery  = 10 * time.Second
	defaultMaxDue = 64
)

// keptEvents is how many events History has at most.
const keptEvents = 1000

// New returns a Runner.
func New(opts Options) *Runner {
	if opts.Every <= 0 {
		opts.Every = defaultEvery
	}
	if opts.MaxDue <= 0 {
		opts.MaxDue = defaultMaxDue
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		started := time.Now()
		opts.Clock = func() (time.Time, time.Duration) { return time.Now(), time.Since(started) }
	}
	r := &Runner{opts: opts}
	r.mu.states = map[string]*state{}
	return r
}

// Run makes passes until ctx ends: the first at once, then when the next step of a collection is due, and at least every Options.Every.
func (r *Runner) Run(ctx context.Context) {
	for {
		p := r.pass(ctx)
		_, now := r.opts.Clock()
		next := time.NewTimer(p.next - now)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
	}
}

// Pass makes one pass and returns what it did. An error ends the pass for its collection, not for the others; the next pass tries again.
func (r *Runner) Pass(ctx context.Context) []Event { return r.pass(ctx).events }

func (r *Runner) pass(ctx context.Context) *pass {
	r.passing.Lock()
	defer r.passing.Unlock()
	_, now := r.opts.Clock()
	p := &pass{Runner: r, next: now + r.opts.Every}
	if err := r.opts.Catalog.Sweep(ctx); err != nil && ctx.Err() == nil {
		p.note(Event{Action: Failed, Reason: "partitions could not be finished or undone", Err: err})
	}
	for _, col := range r.opts.Catalog.Snapshot().Collections("") {
		if ctx.Err() != nil {
			break
		}
		if col.Created && col.Table.Layout.Time != nil {
			p.look(ctx, col)
		}
	}
	return p
}

// pass is one pass of a Runner.
type pass struct {
	*Runner
	events []Event
	next   time.Duration // when the next one is to be, in monotonic time
}

// look does what is due for one collection, and notes when there will be more to do: soon after, unless something failed or waits for somebody.
func (p *pass) look(ctx context.Context, col *catalog.Collection) {
	ns := col.Namespace()
	_, looked := p.opts.Clock()
	now, stop := p.now(ctx, col)
	if stop != "" {
		p.stop(ns, retention.Decision{Stop: stop})
		return
	}
	in := retention.Input{
		Now: now, Layout: col.Table.Layout, Partitions: col.All, Hold: col.Hold, MaxDue: p.opts.MaxDue, Confirmed: p.confirmed(ns),
	}
	d := retention.Decide(in)
	p.stop(ns, d)
	if err := p.carryOut(ctx, col, d); err != nil || d.Stop != "" {
		return
	}
	in.Partitions = p.opts.Catalog.Snapshot().Collection(ns).All
	if next, ok := retention.Next(in); ok {
		p.next = min(p.next, looked+time.Duration(next-now)*time.Millisecond)
	}
}

// carryOut does what was decided for a collection, up to the first error.
func (p *pass) carryOut(ctx context.Context, col *catalog.Collection, d retention.Decision) error {
	ns := col.Namespace()
	if err := p.makeAhead(ctx, ns, d.Make); err != nil {
		return err
	}
	keep := col.Table.Layout.Time.Keep
	for _, part := range d.Hide {
		e := Event{Collection: ns, Partition: part.Name(), Action: Hidden, Reason: fmt.Sprintf("it ended at %s and keep is %s", instant(part.End), keep)}
		if err := p.do(e, func() error { return p.opts.Catalog.Hide(ctx, ns, part.Name()) }); err != nil {
			return err
		}
	}
	for _, part := range d.Drop {
		e := Event{Collection: ns, Partition: part.Name(), Action: Dropped, Reason: fmt.Sprintf("it was hidden at %s and hold is %s", instant(part.Since), col.Hold)}
		if err := p.do(e, func() error { return p.opts.Catalog.DropPartition(ctx, ns, part.Name()) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) makeAhead(ctx context.Context, ns string, places []route.Place) error {
	for _, place := range places {
		e := Event{Collection: ns, Action: Made, Reason: fmt.Sprintf("ahead of time, from %s to %s", instant(place.Start), instant(place.End))}
		err := p.do(e, func() error {
			_, err := p.opts.Catalog.Ensure(ctx, ns, []route.Place{place})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// do does what an event tells of and notes it, with the time that it took and its error.
func (p *pass) do(e Event, work func() error) error {
	_, before := p.opts.Clock()
	e.Err = work()
	_, after := p.opts.Clock()
	e.Took = after - before
	p.note(e)
	return e.Err
}

// now reads the clocks for a collection and says why they can't be trusted, or "".
func (r *Runner) now(ctx context.Context, col *catalog.Collection) (int64, string) {
	wall, monotonic := r.opts.Clock()
	reading := retention.Reading{Wall: wall.UnixMilli(), Monotonic: monotonic}
	if r.opts.BackendTime != nil {
		for _, name := range backends(col) {
			at, err := r.opts.BackendTime(ctx, name)
			if err != nil {
				return 0, fmt.Sprintf("the time of backend %s is not known: %v", name, err)
			}
			if ms := at.UnixMilli(); reading.Backend == 0 || ms < reading.Backend {
				reading.Backend = ms
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateOf(col.Namespace())
	if s.since == nil {
		s.since = &reading
	}
	return retention.Now(*s.since, reading)
}

// backends returns the backends that a collection's partitions lie on.
func backends(col *catalog.Collection) []string {
	var list []string
	seen := map[string]bool{}
	for _, p := range col.All {
		if !seen[p.Backend] {
			seen[p.Backend] = true
			list = append(list, p.Backend)
		}
	}
	return list
}

// stateOf returns what is remembered of a collection. The caller holds mu.
func (r *Runner) stateOf(ns string) *state {
	s := r.mu.states[ns]
	if s == nil {
		s = &state{}
		r.mu.states[ns] = s
	}
	return s
}

// stop remembers why retention has stopped for a collection, if it has, and notes that when it is new.
func (p *pass) stop(ns string, d retention.Decision) {
	p.mu.Lock()
	s := p.stateOf(ns)
	// Two reasons that differ in figures only are one.
	begun := d.Stop != "" && s.stopped == ""
	s.stopped, s.waiting, s.confirmed = d.Stop, d.Waiting, d.Confirmed
	p.mu.Unlock()
	if begun {
		p.note(Event{Collection: ns, Action: Stopped, Reason: d.Stop})
	}
}

// confirmed returns the partitions of a collection that someone has confirmed.
func (r *Runner) confirmed(ns string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stateOf(ns).confirmed
}

// Stopped returns why retention has stopped for a collection, or "".
func (r *Runner) Stopped(ns string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stateOf(ns).stopped
}

// Confirm lets a collection's retention go on past the reason that it has stopped for, and returns that: the clock is right as it is now; or the
// partitions that are due are right, each to be hidden and, once hold has passed, to be dropped. Others that become due are not covered. It
// holds until they are gone, or their time turns out not to have come, or the clock can't be trusted, or the process ends.
func (r *Runner) Confirm(ns string) (reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateOf(ns)
	if s.stopped == "" {
		return ""
	}
	if len(s.waiting) == 0 {
		s.since = nil // it is about the clock
	}
	s.confirmed = make(map[string]bool, len(s.waiting))
	for _, p := range s.waiting {
		s.confirmed[p.Name()] = true
	}
	return s.stopped
}

// note logs an event and keeps it.
func (p *pass) note(e Event) {
	e.At, _ = p.opts.Clock()
	if errors.Is(e.Err, context.Canceled) {
		return // the gateway is stopping
	}
	level := slog.LevelInfo
	if e.Err != nil || e.Action == Stopped || e.Action == Failed {
		level = slog.LevelWarn
	}
	what := []any{"collection", e.Collection, "partition", e.Partition, "reason", e.Reason}
	if e.Err != nil {
		what = append(what, "error", e.Err)
	}
	p.opts.Log.Log(context.Background(), level, "partition "+string(e.Action), what...)
	p.events = append(p.events, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.history) == keptEvents {
		p.mu.history = append(p.mu.history[:0], p.mu.history[1:]...)
	}
	p.mu.history = append(p.mu.history, e)
}

// instant writes an instant for a reason.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
