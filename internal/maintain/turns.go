package maintain

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few jobs take a step at a time. Where several wait, the one goes next that has had the least time for its priority, so that none waits for another's
// backlog.
type turns struct {
	now func() time.Duration // monotonic

	mu      sync.Mutex
	free    int
	line    []*turn
	reached time.Duration // what the last one that went had had
}

func newTurns(atOnce int, now func() time.Duration) *turns { return &turns{now: now, free: atOnce} }

// turn is one job's part in turns.
type turn struct {
	all *turns

	// Below all.mu.
	weight  int
	had     time.Duration // of time, divided by weight
	holding bool
	from    time.Duration
	granted chan struct{} // closed when the turn comes; nil: the job does not stand in the line
	waiting int           // questions to the throttle that wait
}

// credit is the most time that a job which was away can make up for: what it needs between two steps, not its nights.
const credit = 10 * time.Second

// leastTurn is what a step counts at least.
const leastTurn = time.Millisecond

// join returns the part of a job; one that comes later has no claim on the time before.
func (t *turns) join(weight int) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &turn{all: t, weight: weight, had: t.reached}
}

// weigh changes the priority.
func (p *turn) weigh(weight int) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.weight = weight
}

// take waits for the job's turn, or for the end of ctx.
func (p *turn) take(ctx context.Context) error {
	p.all.mu.Lock()
	granted := p.queue()
	p.all.mu.Unlock()
	return p.await(ctx, granted)
}

// queue begins the turn where one is free, or else has the job stand in the line; what it returns is closed when the turn has come. A job whose workers ask one after
// the other stands there once. The caller holds mu.
func (p *turn) queue() (granted <-chan struct{}) {
	t := p.all
	if p.granted != nil {
		return p.granted
	}
	p.granted = make(chan struct{})
	granted = p.granted
	p.had = max(p.had, t.reached-credit)
	if t.free > 0 && len(t.line) == 0 {
		t.free--
		p.hold()
	} else {
		t.line = append(t.line, p)
	}
	return granted
}

// await waits until the turn has come. With the end of ctx the job leaves the line, or gives up the turn that came meanwhile.
func (p *turn) await(ctx context.Context, granted <-chan struct{}) error {
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	t := p.all
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.line, p); i >= 0 {
		t.line = slices.Delete(t.line, i, i+1)
		p.granted = nil
	}
	p.release()
	return context.Cause(ctx)
}

// leave ends the turn, if the job has one.
func (p *turn) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.release()
}

// lend lets others go while the job's step waits for its throttle, until regain.
func (p *turn) lend() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.waiting++
	p.release()
}

// regain takes the turn again once nothing of the step waits any more.
func (p *turn) regain(ctx context.Context) error {
	p.all.mu.Lock()
	p.waiting--
	if p.waiting > 0 || p.holding {
		p.all.mu.Unlock()
		return nil
	}
	granted := p.queue()
	p.all.mu.Unlock()
	return p.await(ctx, granted)
}

// hold begins the turn, and lets those go on who wait for it. The caller holds mu.
func (p *turn) hold() {
	p.holding, p.from = true, p.all.now()
	p.all.reached = max(p.all.reached, p.had)
	close(p.granted)
	p.granted = nil
}

// release ends the turn and gives it to the next. The caller holds mu.
func (p *turn) release() {
	if !p.holding {
		return
	}
	t := p.all
	p.holding = false
	p.had += max(t.now()-p.from, leastTurn) / time.Duration(p.weight)
	if len(t.line) == 0 {
		t.free++
		return
	}
	first := 0
	for i, other := range t.line {
		if other.had < t.line[first].had {
			first = i
		}
	}
	next := t.line[first]
	t.line = slices.Delete(t.line, first, first+1)
	next.hold()
}
