package bench

import (
	"context"
	"sync"
	"time"
)

// grace is how long calls that were begun may take after the end.
const grace = 10 * time.Second

// Crew is the workers of a load. What they have begun may end in its own time, also when the load's context has ended.
type Crew struct {
	workers sync.WaitGroup
	calls   context.Context // that calls are made with
	cancel  context.CancelFunc
	done    chan struct{} // closed when all have ended
	ended   time.Time
}

// NewCrew has no workers yet.
func NewCrew(ctx context.Context) *Crew {
	c := &Crew{done: make(chan struct{})}
	c.calls, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// Spawn starts a worker that makes a pacer's calls until there are no more, or ctx ends.
func (c *Crew) Spawn(ctx context.Context, p *Pacer, call func(ctx context.Context, n int64, meant time.Time)) {
	c.workers.Go(func() {
		for n, meant, ok := p.Next(ctx); ok; n, meant, ok = p.Next(ctx) {
			call(c.calls, n, meant)
		}
	})
}

// Finish waits for the workers, and cuts off what takes too long at the end: of the duration (0: none), or of ctx.
func (c *Crew) Finish(ctx context.Context, duration time.Duration) {
	defer close(c.done)
	all := make(chan struct{})
	go func() { defer close(all); c.workers.Wait() }()
	var over <-chan time.Time
	if duration > 0 {
		timer := time.NewTimer(duration + grace)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-all:
	case <-over:
	case <-ctx.Done():
		select {
		case <-all:
		case <-time.After(grace):
		}
	}
	c.cancel()
	<-all
	c.ended = time.Now()
}

// Done is closed when the load has ended.
func (c *Crew) Done() <-chan struct{} { return c.done }

// Ended is when the load ended, once Done is closed.
func (c *Crew) Ended() time.Time { return c.ended }
