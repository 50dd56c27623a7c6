package failures

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"oxbow/internal/bson"
)

// set is a scripted replica set: members that hold real data in an engine each, a log that the primary's writes go through, elections, and failures
// on demand. What a majority has in its logs is never lost; what only a primary has is rolled back when another one takes over.
type set struct {
	name    string
	members []*member
	modern  bool // it labels its errors, as MongoDB does from 4.4 on
	pool    int  // connections that a gateway has to each member, at most

	// before is asked what is to go wrong with each data command before it runs, and after when it has run; they may wait. Nil: nothing happens.
	before func(c *conn, cmd *command) fault
	after  func(c *conn, cmd *command)

	kicked chan struct{}
	stop   chan struct{}
	ended  chan struct{}

	mu         sync.Mutex
	changed    *sync.Cond // of anything below or in a member
	term       int        // the greatest
	leaderless time.Time  // since when no primary reaches a majority
	patience   time.Duration
	severed    map[string]bool // gateways that reach no member, by application name
	rollbacks  int
	lastOp     int32
	held       map[int32]*heldOp
	lets       bool // commands are not held
}

// entry is one write in the log; command is nil in the one that begins a term.
type entry struct {
	term    int
	command *command
}

// How long a set goes without a primary before it elects one, and a primary without a majority before it steps down. (MongoDB's take about ten
// seconds.)
const (
	electionPatience = 30 * time.Millisecond
	lonelyPatience   = 60 * time.Millisecond
	replicationLag   = 2 * time.Millisecond
)

// newSet starts a set and waits until it has a primary.
func newSet(t testing.TB, name string, members int) *set {
	t.Helper()
	s := &set{
		name: name, modern: true, pool: 8, kicked: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		severed: map[string]bool{}, held: map[int32]*heldOp{}, patience: electionPatience,
	}
	s.changed = sync.NewCond(&s.mu)
	for id := range members {
		s.members = append(s.members, newMember(t, s, id))
	}
	for _, m := range s.members {
		go m.accept()
	}
	go s.run()
	t.Cleanup(s.close)
	s.awaitPrimary()
	return s
}

func (s *set) close() {
	close(s.stop)
	<-s.ended
	for _, m := range s.members {
		m.listener.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		m.goDownLocked()
		m.engine.Close()
	}
}

// run replicates and elects until the set is closed.
func (s *set) run() {
	defer close(s.ended)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.kicked:
			time.Sleep(rand.N(replicationLag)) // a window in which only the primary has a write
		case <-tick.C:
		}
		s.mu.Lock()
		s.replicateLocked()
		s.electLocked(time.Now())
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// kick has what is new replicated soon.
func (s *set) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
}

// linkedLocked reports whether two members reach each other.
func (s *set) linkedLocked(a, b *member) bool {
	return a == b || a.runsLocked() && b.runsLocked() && a.side == b.side
}

// groupLocked returns the members that one reaches, itself among them.
func (s *set) groupLocked(m *member) []*member {
	var group []*member
	for _, other := range s.members {
		if s.linkedLocked(m, other) {
			group = append(group, other)
		}
	}
	return group
}

func (s *set) majority(n int) bool { return 2*n > len(s.members) }

// leadsLocked reports whether a member is a primary that a majority follows or would follow.
func (s *set) leadsLocked(m *member) bool {
	if !m.primary || !m.runsLocked() {
		return false
	}
	followers := 0
	for _, other := range s.groupLocked(m) {
		if other.term <= m.term {
			followers++
		}
	}
	return s.majority(followers)
}

// replicateLocked brings what primaries have to the members that they reach.
func (s *set) replicateLocked() {
	for _, p := range s.members {
		if p.primary && p.runsLocked() {
			p.pushLocked()
		}
	}
}

// electLocked has a member take over where no primary has had a majority for a while, and a primary without one step down.
func (s *set) electLocked(now time.Time) {
	led := false
	for _, p := range s.members {
		switch {
		case s.leadsLocked(p):
			led, p.lonely = true, time.Time{}
		case !p.primary || !p.runsLocked():
		case p.lonely.IsZero():
			p.lonely = now
		case now.Sub(p.lonely) > lonelyPatience:
			p.deposeLocked()
		}
	}
	switch {
	case led:
		s.leaderless = time.Time{}
	case s.leaderless.IsZero():
		s.leaderless, s.patience = now, rand.N(electionPatience)
	case now.Sub(s.leaderless) > s.patience:
		for _, i := range rand.Perm(len(s.members)) {
			if s.members[i].standLocked(now) {
				s.leaderless = time.Time{}
				return
			}
		}
	}
}

// primaryLocked returns the member that leads, or nil.
func (s *set) primaryLocked() *member {
	for _, m := range s.members {
		if s.leadsLocked(m) {
			return m
		}
	}
	return nil
}

// awaitPrimary waits until a member leads, and returns it.
func (s *set) awaitPrimary() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.primaryLocked() == nil {
		s.changed.Wait()
	}
	return s.primaryLocked()
}

// primary returns the member that leads now, else one that believes it does, else any.
func (s *set) primary() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.primaryLocked(); p != nil {
		return p
	}
	for _, m := range s.members {
		if m.primary {
			return m
		}
	}
	return s.members[0]
}

// heal ends all failures and waits until all members have the same log.
func (s *set) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.severed)
	for _, m := range s.members {
		m.side, m.stalled, m.slow, m.faults, m.barred, m.refusing = 0, false, 0, nil, time.Time{}, false
		if !m.up {
			m.up = true
			m.turnedLocked()
		}
	}
	s.changed.Broadcast()
	for !s.agreeLocked() {
		s.changed.Wait()
	}
}

// agreeLocked reports whether all members have the primary's log and know that it lasts.
func (s *set) agreeLocked() bool {
	p := s.primaryLocked()
	if p == nil {
		return false
	}
	for _, m := range s.members {
		if len(m.log) != len(p.log) || m.committed != len(p.log) || m.term != p.term {
			return false
		}
	}
	return true
}

// sever cuts a gateway off from the set, or lets it come again.
func (s *set) sever(app string, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.severed[app] = cut
	for _, m := range s.members {
		for c := range m.conns {
			if cut && c.app == app {
				c.nc.Close()
			}
		}
	}
}

// heldOp is a command that waits to be killed or let go, as currentOp shows it.
type heldOp struct {
	connection int64
	command    bson.Document
	killed     bool
}
