package catalog

import (
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// sends knows which inserts and upserts are under way, by the version of the catalog that this gateway had seen when they were sent.
type sends struct {
	current atomic.Pointer[epoch]

	mu  sync.Mutex
	old []*epoch // those before the current one that have, or had, some under way, oldest first
}

// epoch counts what was sent after one version was seen and before the next one was.
type epoch struct {
	seen    int64
	running atomic.Int64
	longest time.Duration
}

// turn begins an epoch: the snapshot of a version is published.
func (s *sends) turn(seen int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &epoch{seen: seen}
	if before := s.current.Load(); before != nil {
		next.longest = before.longest
		s.old = append(s.old, before)
	}
	s.current.Store(next)
}

// begin counts one more in the epoch as it is now.
func (s *sends) begin() *epoch {
	for {
		e := s.current.Load()
		e.running.Add(1)
		if s.current.Load() == e {
			return e
		}
		e.running.Add(-1) // it may have been taken for empty
	}
}

// drained returns the version that was seen when the oldest of what is under way was sent, or the one that is seen now.
func (s *sends) drained() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.old) > 0 && s.old[0].running.Load() == 0 {
		s.old = s.old[1:]
	}
	if len(s.old) > 0 {
		return s.old[0].seen
	}
	return s.current.Load().seen
}

// empty reports whether nothing is under way.
func (s *sends) empty() bool {
	s.drained()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.old) == 0 && s.current.Load().running.Load() == 0
}

// Sending is an insert or upsert under way.
type Sending struct{ epoch *epoch }

// End tells that it is over. One that was not answered may run where it was sent for as long as its limit is.
func (s Sending) End(answered bool) {
	if answered {
		s.epoch.running.Add(-1)
		return
	}
	time.AfterFunc(s.epoch.longest, func() { s.epoch.running.Add(-1) })
}

// Shared reports whether other gateways may use the catalog as well.
func (c *Catalog) Shared() bool { return c.members != nil }

// Check returns an error, after which drivers retry what may be retried, when the gateway's lease on a shared catalog has run out: it must not touch
// partitions then.
func (c *Catalog) Check() error { return c.members.check() }

// Longest is how long an insert or upsert may take on a partition of a shared catalog.
func (c *Catalog) Longest() time.Duration { return c.members.longest }

// Begin is Check for an insert or an upsert, which makes its collection when it is not there: it counts as under way until it ends, and one into a
// partition that is going or gone is refused with StaleConfig. Only for a shared catalog.
func (c *Catalog) Begin(ns, on string, physical backend.Namespace) (Sending, error) {
	s := Sending{c.members.sends.begin()}
	err := c.members.check()
	if err == nil && !c.Snapshot().Stands(ns, on, physical) {
		err = mongoerr.New(mongoerr.StaleConfig, "a partition of %s was dropped while the write was on its way", ns)
	}
	if err != nil {
		s.epoch.running.Add(-1)
	}
	return s, err
}

// Stands reports whether a partition of the collection ns is there, and not about to go.
func (s *Snapshot) Stands(ns, on string, physical backend.Namespace) bool {
	c := s.collections[ns]
	if c == nil {
		return false
	}
	i, ok := c.physical[place{on, physical}]
	return ok && c.All[i].State != route.Dropping
}

// place is where a partition lies.
type place struct {
	backend   string
	namespace backend.Namespace
}
