package partition

import (
	"context"
	"time"
)

// How long a pass waits for the pace of one drop, until it looks after other collections and comes back, and how long a drop waits in all: what
// is kept too long costs more than a drop does.
const (
	paceWait = time.Second
	patience = time.Minute
)

// granted reports whether another drop of a collection may go now; else the next pass comes soon. left is how many are due, this one among them.
func (p *pass) granted(ctx context.Context, ns, backend string, left int) bool {
	if p.opts.Pace == nil {
		return true
	}
	pace := p.opts.Pace(backend)
	if pace == nil {
		return true
	}
	limited, cancel := context.WithTimeout(ctx, paceWait)
	defer cancel()
	err := pace.Wait(limited, 1, 0)
	_, now := p.opts.Clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stateOf(ns)
	if err == nil || s.patience != 0 && now >= s.patience {
		s.waits, s.patience = "", 0
		return true
	}
	if s.patience == 0 {
		s.patience = now + patience
	}
	s.left, s.waits = left, pace.Reason()
	p.next = min(p.next, now+paceWait)
	return false
}

// grant notes that no drop of a collection waits.
func (p *pass) grant(ns string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stateOf(ns)
	s.left, s.waits, s.patience = 0, "", 0
}
