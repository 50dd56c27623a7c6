package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// keep renews the lease, reads the orders and looks whether the run may go on, until it is over.
func (h *run) keep(over <-chan struct{}) {
	every := min(h.opts.Poll, h.opts.Lease/5)
	for {
		select {
		case <-over:
			return
		case <-time.After(every):
		}
		if h.check(); h.lapsed() == nil { // a clock that jumped is not put down as the time of a renewal
			h.beat()
		}
		h.check()
	}
}

// beat renews the lease and takes over the orders.
func (h *run) beat() {
	wall, monotonic := h.opts.Clock()
	h.mu.Lock()
	reason := h.reason()
	set := append(h.progress(), driver.E{Key: "reason", Value: reason})
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.Lease/2)
	defer cancel()
	rec, err := h.opts.Store.renew(ctx, h.held, wall, set)
	switch {
	case errors.Is(err, errLost):
		h.finish(ending{state: Waiting, reason: errLost.Error(), hard: true, lost: true})
	case err != nil:
		h.warnings.tell(h.spec.ID, "the lease of a job could not be renewed", err)
	default:
		h.obey(rec.Orders, reading{wall, monotonic})
	}
}

// obey takes over orders that came with a renewal.
func (h *run) obey(o Orders, sent reading) {
	h.mu.Lock()
	h.mu.renewed = sent
	h.mu.orders = o
	h.mu.Unlock()
	if h.throttle != nil {
		h.throttle.Limit(o.limits(h.spec.Limits))
	}
	weight := h.spec.weight()
	if o.Priority != nil {
		weight = min(max(1, *o.Priority), MaxPriority)
	}
	h.turn.weigh(weight)
}

// progress is what changes while a job runs. The caller holds mu.
func (h *run) progress() driver.D {
	_, monotonic := h.opts.Clock()
	p := paced{Rate: h.mu.meter.rate(monotonic), Share: 1}
	if h.throttle != nil {
		p.Share = h.throttle.Share()
	}
	return driver.D{
		{Key: "pace", Value: p}, {Key: "failures", Value: h.mu.failures},
		{Key: "spent", Value: h.spentNow(monotonic).Milliseconds()}, {Key: "spentFrom", Value: h.mu.spentFrom},
	}
}

// spentNow is how long the job has run since spentFrom. The caller holds mu.
func (h *run) spentNow(monotonic time.Duration) time.Duration {
	return h.mu.spent + monotonic - h.mu.stretch.begin.monotonic
}

// reason says why the job is not at its full pace, or "". The caller holds mu.
func (h *run) reason() string {
	switch {
	case h.mu.failing != "":
		return h.mu.failing
	case h.throttle != nil:
		return h.throttle.Reason()
	}
	return ""
}

// check ends the run if it may not go on, and sets the alarm for when that will be.
func (h *run) check() {
	wall, monotonic := h.opts.Clock()
	h.mu.Lock()
	orders, renewed, spent, decided := h.mu.orders, h.mu.renewed, h.spentNow(monotonic), h.mu.closed || h.mu.ending != nil && h.mu.ending.hard
	h.mu.Unlock()
	if decided {
		return
	}
	if err := h.lapsed(); err != nil {
		h.finish(ending{state: Waiting, reason: err.Error(), hard: true, lost: true})
		return
	}
	if e := h.orderedEnd(&orders); e != nil {
		h.finish(*e)
	}
	if stop := h.trusts.distrust(h.spec.ID, orders.Resumed); stop != "" {
		h.finish(ending{state: Held, reason: stop, hard: true})
		return
	}
	next := min(h.opts.Poll, h.opts.Lease-since(renewed, reading{wall, monotonic}))
	span, in := h.spec.Windows.At(wall)
	switch {
	case !in:
		opening, _ := h.spec.Windows.Next(wall)
		h.finish(ending{state: Waiting, reason: "its window has closed, and " + opens(opening), hard: true})
		return
	case !span.End.IsZero():
		next = min(next, span.End.Sub(wall))
	}
	if h.spec.MaxRun > 0 {
		if spent >= h.spec.MaxRun {
			h.finish(h.outOfTime(wall))
			return
		}
		next = min(next, h.spec.MaxRun-spent)
	}
	h.alarm.Reset(next)
}

// orderedEnd is the ending that somebody has ordered, or nil.
func (h *run) orderedEnd(o *Orders) *ending {
	if o.Stopped {
		return &ending{state: Stopped, reason: "stopped by an order", hard: o.Now}
	}
	if o.Paused {
		return &ending{state: Paused, reason: "paused by an order"}
	}
	if stop := h.spec.stopFileOn(h.host); stop != "" {
		return &ending{state: Held, reason: stop}
	}
	if now, ok := h.wanted(); !ok {
		return &ending{state: Waiting, reason: "it is no job of this process any more"}
	} else if !now.same(h.spec) {
		return &ending{state: Waiting, reason: "its specification has changed"}
	}
	return nil
}

// outOfTime is the ending of a run that has taken its time: until the next window or, without windows, until somebody resumes it.
func (h *run) outOfTime(wall time.Time) ending {
	reason := fmt.Sprintf("it has run for %s, which is its limit", h.spec.MaxRun)
	if next, ok := h.spec.Windows.Next(wall); ok {
		return ending{state: Waiting, reason: reason + ", and " + opens(next), next: next, hard: true}
	}
	return ending{state: Stopped, reason: reason + ": resume it to go on", hard: true, ended: true}
}

// lapsed returns the error of a lease that lasts no longer.
func (h *run) lapsed() error {
	wall, monotonic := h.opts.Clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.ending != nil && h.mu.ending.lost {
		return errors.New(h.mu.ending.reason)
	}
	if age := since(h.mu.renewed, reading{wall, monotonic}); age >= h.opts.Lease {
		return fmt.Errorf("its lease could not be renewed for %s", age.Round(time.Second))
	}
	return nil
}

// since is the time between two readings: the greater one by monotonic and wall time, since the former stands still while some machines sleep.
func since(from, to reading) time.Duration {
	return max(to.monotonic-from.monotonic, to.wall.Sub(from.wall))
}

// finish ends the run: after the step, or at once where the ending is hard. The first ending counts, unless a hard one comes after it.
func (h *run) finish(e ending) {
	h.mu.Lock()
	if was := h.mu.ending; was == nil || e.hard && !was.hard || e.lost && !was.lost {
		h.mu.ending = &e
	}
	h.mu.Unlock()
	h.halt(halted{e.reason})
	if e.hard {
		h.kill(h.interrupted(e.reason))
	}
}

// ended returns the ending that was decided, or nil.
func (h *run) ended() *ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.ending
}

// endedOr returns the ending that was decided, or another.
func (h *run) endedOr(e ending) ending {
	if decided := h.ended(); decided != nil {
		return *decided
	}
	return e
}

// soon does something later, unless the run is over by then.
func (h *run) soon(d time.Duration, do func()) {
	timer := time.AfterFunc(d, do)
	context.AfterFunc(h.ctx, func() { timer.Stop() })
}
