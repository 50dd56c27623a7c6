package partition

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oxbow/internal/catalog"
	"oxbow/internal/maintain"
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
	looked    time.Time         // when its collection was looked at last
	next      time.Time         // when its next step is due; zero: not known
	left      int               // drops that are due and wait for their pace
	waits     string            // for what
	patience  time.Duration     // when they do not wait any longer, in monotonic time; 0: none waits
	overdue   time.Duration     // how long the oldest data has been there beyond its time
	failed    string            // the last error, or ""
}

// Options are what a Runner needs.
type Options struct {
	Catalog *catalog.Catalog
	Log     *slog.Logger
	Every   time.Duration // between two passes at most: one is made earlier when something becomes due; 0: 10 s
	MaxDue  int           // most time ranges due at once without a confirmation; 0: 64
	// BackendTime returns a backend's idea of now, or an error; nil: the wall clock alone counts.
	BackendTime func(ctx context.Context, backend string) (time.Time, error)
	// Pace returns what drops on a backend wait for where several are due; nil: nothing.
	Pace func(backend string) maintain.Throttle
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
	if r.opts.Catalog.Check() != nil { // other gateways look after partitions until this one has its lease again
		p.next = now + min(r.opts.Every, time.Second)
		return p
	}
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

// stateOf returns what is remembered of a collection. The caller holds mu.
func (r *Runner) stateOf(ns string) *state {
	s := r.mu.states[ns]
	if s == nil {
		s = &state{}
		r.mu.states[ns] = s
	}
	return s
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
