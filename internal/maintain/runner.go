package maintain

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Options are what a Runner needs.
type Options struct {
	Store *Store
	Kinds map[string]Kind
	// Throttle returns the throttle of a job, nil for one without; nil: no job has one, nor limits.
	Throttle func(Spec) Throttle
	// Kill ends all commands that carry a comment, wherever in the deployment they run, and returns once none is left. It is called when a step was cut off,
	// and before the job of a process goes on that was lost. nil: a step's end is the end of what it sent.
	Kill func(ctx context.Context, tag string) error
	// BackendTime returns what time it is where a job's collection lies; nil: there they have the clock of this machine.
	BackendTime func(ctx context.Context, spec Spec) (time.Time, error)
	Log         *slog.Logger
	// Clock returns the wall clock and monotonic time since some fixed moment; nil: this machine's.
	Clock func() (wall time.Time, monotonic time.Duration)

	Lease  time.Duration // 0: 10 s
	Poll   time.Duration // between two looks at orders, windows and stop files; 0: 1 s
	AtOnce int           // jobs that take a step at a time; 0: 4
	Grace  time.Duration // what a step may take once the Runner is to end; 0: 30 s
}

// The defaults of Options.
const (
	defaultLease  = 10 * time.Second
	defaultPoll   = time.Second
	defaultAtOnce = 4
	defaultGrace  = 30 * time.Second
)

// Runner runs jobs that are kept in a Store. Safe for concurrent use.
type Runner struct {
	opts   Options
	me     owner
	turns  *turns
	trusts *trusts

	warnings *warnings

	mu struct {
		sync.Mutex
		specs   map[string]Spec
		stored  map[string]bool // specifications that the Store has
		running map[string]bool
		watches map[string]*watch
		latest  []Status
	}
}

// New returns a Runner without jobs.
func New(opts Options) *Runner {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		started := time.Now()
		opts.Clock = func() (time.Time, time.Duration) { now := time.Now(); return now.Round(0), now.Sub(started) }
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&opts.Lease, defaultLease}, {&opts.Poll, defaultPoll}, {&opts.Grace, defaultGrace}} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	if opts.AtOnce <= 0 {
		opts.AtOnce = defaultAtOnce
	}
	r := &Runner{opts: opts, me: newOwner()}
	r.turns = newTurns(opts.AtOnce, func() time.Duration { _, monotonic := opts.Clock(); return monotonic })
	r.mu.specs, r.mu.stored = map[string]Spec{}, map[string]bool{}
	r.mu.running, r.mu.watches = map[string]bool{}, map[string]*watch{}
	r.trusts, r.warnings = newTrusts(opts.Clock), newWarnings(opts.Log)
	return r
}

// Set replaces the jobs that Run looks after. One that runs and is not among them, or has changed, stops after its step.
func (r *Runner) Set(specs []Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.specs, r.mu.stored = map[string]Spec{}, map[string]bool{}
	for _, s := range specs {
		r.mu.specs[s.ID] = s
	}
}

// Has reports whether a job is among those that Set named.
func (r *Runner) Has(id string) bool {
	_, ok := r.wanted(id)
	return ok
}

// PutAgain has a job that Set named stored anew, since somebody has removed it.
func (r *Runner) PutAgain(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.stored, id)
}

// Run runs the jobs that Set names, each when it is due, until ctx ends: then it lets steps end that are under way, and returns.
func (r *Runner) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		wait := r.opts.Poll
		if at, ok := r.round(ctx, &working); ok {
			wall, _ := r.opts.Clock()
			wait = max(0, min(wait, at.Sub(wall)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// Latest returns the jobs as they were at the last look at them, without asking the deployment.
func (r *Runner) Latest() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.latest)
}

// Store is where the jobs are kept.
func (r *Runner) Store() *Store { return r.opts.Store }

// round looks at all jobs, begins those that are due, and returns when the next will be, if that is known.
func (r *Runner) round(ctx context.Context, working *sync.WaitGroup) (next time.Time, ok bool) {
	specs := r.putNew(ctx)
	if len(specs) == 0 {
		return next, false
	}
	records, err := r.records(ctx)
	r.warnings.tell("", "the jobs can't be read", err)
	if err != nil {
		return next, false
	}
	for i := range records {
		rec := &records[i]
		spec, ours := specs[rec.ID]
		if ours && rec.fault != nil {
			r.warnings.tell(rec.ID, "a job could not be run", rec.fault)
		}
		if !ours || rec.fault != nil || !r.begin(rec.ID) {
			continue
		}
		v := r.consider(ctx, &spec, rec)
		if !v.due {
			r.end(rec.ID)
			if !v.next.IsZero() && (!ok || v.next.Before(next)) {
				next, ok = v.next, true
			}
			continue
		}
		working.Go(func() {
			defer r.end(spec.ID)
			r.warnings.tell(spec.ID, "a job could not be run", r.work(ctx, &spec, rec))
		})
	}
	return next, ok
}

// putNew stores specifications that the Store does not have, and returns those that it has.
func (r *Runner) putNew(ctx context.Context) map[string]Spec {
	r.mu.Lock()
	var fresh []Spec
	specs := make(map[string]Spec, len(r.mu.specs))
	for id, s := range r.mu.specs {
		specs[id] = s
		if !r.mu.stored[id] {
			fresh = append(fresh, s)
		}
	}
	r.mu.Unlock()
	for _, s := range fresh {
		limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
		err := r.opts.Store.Put(limited, s)
		cancel()
		r.warnings.tell(s.ID, "a job could not be stored", err)
		if err != nil {
			delete(specs, s.ID)
			continue
		}
		r.mu.Lock()
		r.mu.stored[s.ID] = true
		r.mu.Unlock()
	}
	return specs
}

// records reads all jobs, and remembers them for Latest.
func (r *Runner) records(ctx context.Context) ([]record, error) {
	limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
	defer cancel()
	records, err := r.opts.Store.records(limited, nil)
	if err != nil {
		return nil, err
	}
	wall, _ := r.opts.Clock()
	latest := make([]Status, len(records))
	for i := range records {
		latest[i] = records[i].status(wall)
	}
	r.mu.Lock()
	r.mu.latest = latest
	r.mu.Unlock()
	return records, nil
}

// begin notes that this process looks after a job; false if it does already.
func (r *Runner) begin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.running[id] {
		return false
	}
	r.mu.running[id] = true
	return true
}

func (r *Runner) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.running, id)
}

// wanted is the specification that a job is to be run by now; false if it is not to be run any more.
func (r *Runner) wanted(id string) (Spec, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, ok := r.mu.specs[id]
	return now, ok
}

// gone reports whether the owner of a lease was watched not to renew it, or is this process, which does not run the job.
func (r *Runner) gone(rec *record) bool {
	if rec.Lease.Owner == r.me.name {
		return true
	}
	_, monotonic := r.opts.Clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.mu.watches[rec.ID]
	if w == nil {
		w = &watch{}
		r.mu.watches[rec.ID] = w
	}
	return w.look(rec.Lease, monotonic)
}
