package throttle

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"oxbow/internal/maintain"
)

// DeleteEntry is about what the deletion of one document adds to the oplog, in bytes: an entry with ts, t, v, op, ns, ui, wall and o, which is {_id}
// (https://www.mongodb.com/docs/manual/core/replica-set-oplog/). A long namespace or _id adds to it.
const DeleteEntry = 150

// Pace is one job's part of a throttle. Safe for concurrent use by the job's workers, who share it.
type Pace struct {
	throttle *Throttle
	frees    bool
	// line holds whoever is next: one step at a time waits for its documents and bytes. With a place for each, those who give theirs back when the pace
	// changes would give back more or less than they took (https://pkg.go.dev/golang.org/x/time/rate#Reservation.CancelAt).
	line chan struct{}

	mu struct {
		sync.Mutex
		limits    maintain.Limits
		search    search
		documents *rate.Limiter
		bytes     *rate.Limiter
		changed   chan struct{} // closed when limits change
	}
}

var _ maintain.Throttle = (*Pace)(nil)

// Pace returns a pace for a job. Without a limit of documents the pace is searched for.
func (t *Throttle) Pace(l maintain.Limits) *Pace { return t.pace(l, false) }

// DropPace returns a pace for work that gives disk space back at once, such as drops: a full disk does not stop it.
func (t *Throttle) DropPace(l maintain.Limits) *Pace { return t.pace(l, true) }

func (t *Throttle) pace(l maintain.Limits, frees bool) *Pace {
	p := &Pace{throttle: t, frees: frees, line: make(chan struct{}, 1)}
	p.mu.limits, p.mu.changed = l, make(chan struct{})
	p.emptyLocked()
	p.mu.search = newSearch()
	return p
}

// Limit implements maintain.Throttle: it changes the limits, also for steps that wait.
func (p *Pace) Limit(l maintain.Limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.limits == l {
		return
	}
	p.mu.limits = l
	p.emptyLocked()
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
}

// emptyLocked begins with limits of which nothing is saved up: the first step pays for itself.
func (p *Pace) emptyLocked() {
	p.mu.documents, p.mu.bytes = rate.NewLimiter(rate.Inf, 1), rate.NewLimiter(rate.Inf, 1)
}

// Verdict returns the verdict for the job, with its reason.
func (p *Pace) Verdict() Verdict {
	v, _ := p.throttle.now(p.frees)
	return v
}

// Reason implements maintain.Throttle.
func (p *Pace) Reason() string {
	if v := p.Verdict(); v.Share < 1 {
		return v.Reason
	}
	return ""
}

// Share is the share of the full pace that is given now, in (0, 1].
func (p *Pace) Share() float64 { return min(1, max(slowest, p.Verdict().Share)) }

// Rate is the documents a second that are let through now, at most; 0 while the job is stopped.
func (p *Pace) Rate() float64 {
	v := p.Verdict()
	p.mu.Lock()
	defer p.mu.Unlock()
	full := p.mu.limits.Documents
	if full == 0 {
		full = p.mu.search.full
	}
	return full * v.Share
}

// Wait returns when a step may send: when the verdict is not stop, and the step's documents and bytes (of oplog; 0: about what deletes of the documents add) are
// within the limits times the verdict's share. Whoever waits notices a change of the verdict, its share or the limits within 2 s. The error is that of ctx.
func (p *Pace) Wait(ctx context.Context, documents int, bytes int64) error {
	if bytes == 0 {
		bytes = int64(documents) * DeleteEntry
	}
	p.throttle.traffic.wait()
	err := p.wait(ctx, documents, bytes)
	p.throttle.traffic.leave(err == nil)
	return err
}

func (p *Pace) wait(ctx context.Context, documents int, bytes int64) error {
	if documents > 0 || bytes > 0 {
		select {
		case p.line <- struct{}{}:
			defer func() { <-p.line }()
		case <-ctx.Done():
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for the pace: %w", context.Cause(ctx))
		}
		verdict, changed := p.throttle.now(p.frees)
		turn := p.reserve(verdict, documents, bytes)
		if turn.delay == 0 {
			return nil
		}
		var due <-chan time.Time // never, while it is stopped
		if verdict.State != Stop {
			due = time.After(turn.delay)
		}
		select {
		case <-due:
			p.bound()
			return nil
		case <-changed:
		case <-turn.changed:
		case <-ctx.Done():
		}
		turn.cancel()
	}
}

// turn is a step's place in the limits.
type turn struct {
	delay   time.Duration // until it comes
	cancel  func()        // gives it back
	changed <-chan struct{}
}

// reserve takes a place for a step at the pace of a verdict; none with a stop.
func (p *Pace) reserve(v Verdict, documents int, bytes int64) turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := turn{delay: 1, cancel: func() {}, changed: p.mu.changed}
	now := time.Now()
	full := p.mu.limits.Documents
	if full == 0 {
		full = p.mu.search.next(now, v)
	}
	if v.State == Stop {
		return t
	}
	first := take(p.mu.documents, now, full*v.Share, documents)
	second := take(p.mu.bytes, now, p.mu.limits.Bytes*v.Share, int(bytes))
	t.delay = max(first.DelayFrom(now), second.DelayFrom(now))
	t.cancel = func() {
		first.Cancel()
		second.Cancel()
	}
	return t
}

// bound notes that a step has had to wait for the pace.
func (p *Pace) bound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.search.bounded = time.Now()
}

// take reserves n of a limiter at a rate a second; 0: at once. A step is let through whole, however large, when there is room for it.
func take(l *rate.Limiter, now time.Time, perSecond float64, n int) *rate.Reservation {
	limit := rate.Limit(perSecond)
	if perSecond == 0 {
		limit = rate.Inf
	}
	if l.Limit() != limit {
		l.SetLimitAt(now, limit)
	}
	if l.Burst() < n {
		l.SetBurstAt(now, n)
	}
	return l.ReserveN(now, n)
}
