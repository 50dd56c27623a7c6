package maintain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// run is one job under one lease of this process.
type run struct {
	opts     *Options
	spec     *Spec
	wanted   func() (Spec, bool) // the specification that the job is to be run by now; false if it is not to be run any more
	held     held
	host     string // of this process, for people
	trusts   *trusts
	warnings *warnings
	throttle Throttle // nil: none
	turn     *turn

	ctx   context.Context // ends when what is in flight is to be killed
	kill  context.CancelCauseFunc
	soft  context.Context // ends when no step is to begin any more
	halt  context.CancelCauseFunc
	alarm *time.Timer // for the next moment at which something ends

	mu struct {
		sync.Mutex
		ending     *ending
		closed     bool
		orders     Orders
		renewed    reading // when the last renewal was sent
		failing    string  // why the last step is tried again
		checkpoint bson.Document
		pass       passed
		meter      meter
		failures   int
		entries    int64
		spent      time.Duration // until this stretch, since spentFrom
		spentFrom  time.Time
		stretch    stretch
	}
}

// reading is what the clocks showed at one moment.
type reading struct {
	wall      time.Time
	monotonic time.Duration
}

// stretch is where the entry begins that the history will have.
type stretch struct {
	begin reading
	pass  passed // as it was then
}

// ending is why a run ends.
type ending struct {
	state  State
	reason string
	next   time.Time // not before; zero: as soon as nothing stands against it
	hard   bool      // what is in flight is killed
	lost   bool      // the lease is: nothing is written any more
	over   bool      // the pass is
	ended  bool      // the job does not go on by itself
}

// work runs a job that is due, until something ends that. The error is one of what stands around the job; the job's own are in its document.
func (r *Runner) work(ctx context.Context, spec *Spec, seen *record) error {
	wall, monotonic := r.opts.Clock()
	limited, cancel := context.WithTimeout(ctx, r.opts.Lease/2)
	defer cancel()
	rec, err := r.opts.Store.acquire(limited, seen, spec, r.me, r.opts.Lease, wall)
	if err != nil || rec == nil {
		return err
	}
	h := r.newRun(spec, rec, reading{wall, monotonic})
	defer h.kill(nil)
	defer h.halt(nil)
	defer context.AfterFunc(ctx, func() {
		h.finish(ending{state: Waiting, reason: "who ran it was stopped: it goes on when it is run again"})
		h.soon(r.opts.Grace, func() {
			h.finish(ending{state: Waiting, reason: "who ran it was stopped, and its step took too long", hard: true})
		})
	})()
	over := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() { h.keep(over) })
	e := h.start(rec, seen)
	var killed error
	if e.hard {
		killed = h.cleared()
	}
	close(over)
	keeping.Wait()
	defer h.close()
	return h.leave(e, killed)
}

// close stops what may still look at the run.
func (h *run) close() {
	h.mu.Lock()
	h.mu.closed = true
	h.mu.Unlock()
	h.alarm.Stop()
}

func (r *Runner) newRun(spec *Spec, rec *record, now reading) *run {
	h := &run{
		opts: &r.opts, spec: spec, wanted: func() (Spec, bool) { return r.wanted(spec.ID) }, held: held{spec.ID, rec.Lease.Token, r.me.name}, host: r.me.host,
		trusts: r.trusts, warnings: r.warnings, turn: r.turns.join(spec.weight()),
	}
	h.ctx, h.kill = context.WithCancelCause(context.Background())
	h.soft, h.halt = context.WithCancelCause(h.ctx)
	h.mu.orders, h.mu.renewed, h.mu.checkpoint, h.mu.pass = rec.Orders, now, bson.Document(rec.Checkpoint), rec.Pass
	h.mu.failures, h.mu.entries = rec.Failures, rec.Entries
	if from := h.period(now.wall); rec.SpentFrom.Equal(from.Truncate(time.Millisecond)) {
		h.mu.spent, h.mu.spentFrom = time.Duration(rec.Spent)*time.Millisecond, rec.SpentFrom
	} else {
		h.mu.spentFrom = from
	}
	h.mu.stretch = stretch{now, rec.Pass}
	if r.opts.Throttle != nil {
		h.throttle = r.opts.Throttle(*spec)
	}
	if h.throttle != nil {
		h.throttle.Limit(rec.Orders.limits(spec.Limits))
	}
	// The check sets the alarm again, so it is there before it goes off.
	h.alarm = time.AfterFunc(time.Hour, h.check)
	h.alarm.Reset(r.opts.Poll)
	return h
}

// period is when the time began that MaxRun is of: the window's begin, or the pass's.
func (h *run) period(wall time.Time) time.Time {
	if s, ok := h.spec.Windows.At(wall); ok && !s.Begin.IsZero() {
		return s.Begin
	}
	return h.mu.pass.Begun
}

// start clears up after an owner that was lost, and then runs passes.
func (h *run) start(rec, seen *record) ending {
	if seen.Lease.Owner != "" {
		if err := h.cleared(); err != nil {
			return h.again(fmt.Errorf("end what %s left running: %w", seen.Lease.Host, err))
		}
		h.mu.entries++
		err := h.store(func(ctx context.Context) error { return h.opts.Store.addEntry(ctx, cutOff(seen, h.mu.entries)) })
		h.warnings.tell(h.spec.ID, "the history does not tell that a job was cut off", err)
	}
	for {
		e := h.pass()
		if !e.over || e.ended || !h.stay(e) {
			return e
		}
	}
}

// again is the ending of a run whose surroundings failed.
func (h *run) again(err error) ending {
	wall, _ := h.opts.Clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.failures++
	if isPermanent(err) || h.spec.Retries > 0 && h.mu.failures >= h.spec.Retries {
		return ending{state: Failed, reason: err.Error(), ended: true}
	}
	delay := backOff(h.mu.failures)
	return ending{state: Waiting, reason: fmt.Sprintf("it is tried again after %s: %v", delay, err), next: wall.Add(delay)}
}

// mostDelay is the longest time between two tries.
const mostDelay = 5 * time.Minute

// backOff is how long to wait after so many failures in a row.
func backOff(failures int) time.Duration {
	if failures > 9 {
		return mostDelay
	}
	return min(mostDelay, time.Second<<(failures-1))
}

// pass runs steps until the pass is over or something ends the run.
func (h *run) pass() ending {
	job, err := h.makeJob()
	if err != nil {
		return h.again(err)
	}
	if c, ok := job.(Closer); ok {
		defer func() { h.warnings.tell(h.spec.ID, "a job could not be closed", c.Close()) }()
	}
	for {
		outcome, err := h.step(job)
		switch e := h.ended(); {
		case err == nil && outcome != nil:
			if e, stored := h.done(outcome); !stored || outcome.Done {
				return e
			}
		case e != nil:
			return *e
		case err != nil:
			if e := h.again(err); e.ended || !h.sleep(e) {
				return h.endedOr(e)
			}
		}
	}
}

func (h *run) makeJob() (Job, error) {
	kind, ok := h.opts.Kinds[h.spec.Kind]
	if !ok {
		return nil, Permanent(fmt.Errorf("there is no kind of jobs called %q here", h.spec.Kind))
	}
	job, err := kind(*h.spec)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return job, nil
}

// step takes a step when it is the job's turn; without outcome and error it was not to be taken.
func (h *run) step(job Job) (*Outcome, error) {
	if h.check(); h.ended() != nil || h.turn.take(h.soft) != nil {
		return nil, nil
	}
	defer h.turn.leave()
	if h.check(); h.ended() != nil { // time has passed
		return nil, nil
	}
	h.mu.Lock()
	checkpoint := h.mu.checkpoint
	h.mu.Unlock()
	outcome, err := job.Step(h.ctx, checkpoint, &pace{h})
	if err != nil {
		return nil, err
	}
	return &outcome, nil
}

// done stores what a step did. The ending is that of the pass, or of the lease, if it is over.
func (h *run) done(o *Outcome) (e ending, stored bool) {
	_, monotonic := h.opts.Clock()
	h.mu.Lock()
	h.mu.failures, h.mu.failing = 0, ""
	h.mu.checkpoint = o.Checkpoint
	h.mu.pass.add(o)
	h.mu.meter.add(monotonic, o.Documents)
	set := append(h.progress(), driver.E{Key: "pass", Value: h.mu.pass}, driver.E{Key: "over", Value: o.Done})
	h.mu.Unlock()
	update := driver.D{{Key: "$set", Value: set}}
	if o.Checkpoint == nil || o.Done {
		update = append(update, driver.E{Key: "$unset", Value: driver.D{{Key: "checkpoint", Value: ""}}})
	} else {
		update[0].Value = append(set, driver.E{Key: "checkpoint", Value: driver.Raw(o.Checkpoint)})
	}
	if err := h.store(func(ctx context.Context) error { return h.opts.Store.put(ctx, h.held, update) }); err != nil {
		e := ending{state: Waiting, reason: fmt.Sprintf("what it did could not be put down: %v", err), hard: true, lost: true}
		h.finish(e)
		return e, false
	}
	return h.passOver(), true
}

// passOver is the ending of a pass.
func (h *run) passOver() ending {
	wall, _ := h.opts.Clock()
	next, more := h.spec.next(h.mu.pass.Begun)
	if !more {
		return ending{state: Done, over: true, ended: true}
	}
	if next.Before(wall) {
		next = wall
	}
	return ending{state: Waiting, reason: "its next pass begins at " + instant(next), next: next, over: true}
}

// stayFor is how long a lease is kept between two passes.
const stayFor = time.Minute

// stay waits for the next pass under the lease if that comes soon, and begins it; false if the run is to end.
func (h *run) stay(e ending) bool {
	wall, _ := h.opts.Clock()
	if wait := e.next.Sub(wall); wait > stayFor || h.ended() != nil || !h.spec.Windows.In(e.next) {
		return false
	}
	if err := h.tellEntry(e, false); err != nil || !h.sleep(e) {
		return false
	}
	wall, monotonic := h.opts.Clock()
	h.mu.Lock()
	h.mu.pass, h.mu.checkpoint, h.mu.failures = passed{Begun: wall, Remaining: -1}, nil, 0
	h.mu.stretch = stretch{reading{wall, monotonic}, h.mu.pass}
	if from := h.period(wall); !from.Equal(h.mu.spentFrom) {
		h.mu.spent, h.mu.spentFrom = 0, from
	}
	set := driver.D{{Key: "pass", Value: h.mu.pass}, {Key: "over", Value: false}, {Key: "failures", Value: 0}, {Key: "state", Value: Running}, {Key: "next", Value: time.Time{}}}
	h.mu.Unlock()
	return h.store(func(ctx context.Context) error {
		return h.opts.Store.put(ctx, h.held, driver.D{{Key: "$set", Value: set}})
	}) == nil
}

// sleep waits until an ending's time has come; false if something ends the run before.
func (h *run) sleep(e ending) bool {
	wall, _ := h.opts.Clock()
	h.mu.Lock()
	h.mu.failing = e.reason
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.mu.failing = ""
		h.mu.Unlock()
	}()
	select {
	case <-h.soft.Done():
		return false
	case <-time.After(e.next.Sub(wall)):
		return true
	}
}

// store writes something under the lease, and tries for as long as a lease lasts: a step that was taken is not to be taken again only because a server was away
// for a moment.
func (h *run) store(write func(ctx context.Context) error) error {
	const pause = 100 * time.Millisecond
	_, begun := h.opts.Clock()
	for {
		if err := h.lapsed(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), h.opts.Lease/2)
		err := write(ctx)
		cancel()
		if _, now := h.opts.Clock(); err == nil || errors.Is(err, errLost) || now-begun >= h.opts.Lease {
			return err
		}
		time.Sleep(pause)
	}
}

// cleared ends what carries the job's tag.
func (h *run) cleared() error {
	if h.opts.Kill == nil {
		return nil
	}
	const most = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	return h.opts.Kill(ctx, h.spec.Tag())
}

// leave ends the run: the history has its entry, and the lease is free. killed says why it is not certain that what was in flight is gone.
func (h *run) leave(e ending, killed error) error {
	if killed != nil {
		e.reason += fmt.Sprintf("; that nothing of it still runs could not be made sure: %v", killed)
	}
	if e.lost {
		return errors.New(e.reason)
	}
	// With killed the lease runs out by itself, and who takes it kills first.
	return h.tellEntry(e, killed == nil)
}

// interrupted is the cause of a step's end.
func (h *run) interrupted(reason string) error {
	return mongoerr.New(mongoerr.Interrupted, "job %s: %s", h.spec.ID, reason)
}
