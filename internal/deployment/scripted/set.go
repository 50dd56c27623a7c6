package scripted

import (
	"context"
	"fmt"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Set is a scripted replica set. What it and its members are is changed with Change only, once it is asked.
type Set struct {
	Name    string
	Term    int64
	Oplog   time.Duration // from the first to the last entry of each member's oplog
	Filling bool          // the oplog has not reached its size yet
	Members []*Member
	Ahead   time.Duration // its clocks, of this machine's

	mu      sync.Mutex
	version int64 // of its configuration
	clock   func() time.Time
}

// Member is one scripted server.
type Member struct {
	Host   string
	State  string // as replSetGetStatus names it: PRIMARY, SECONDARY, ARBITER, RECOVERING, …
	Hidden bool
	Delay  time.Duration
	Tags   map[string]string
	NoVote bool

	Down   bool            // nobody reaches it
	Silent bool            // it takes commands and does not answer
	Lag    time.Duration   // how long ago the last write was that it has
	Refuse map[string]bool // commands that it answers with Unauthorized

	Status driver.D // of serverStatus, the fields that the test cares about
	Disk   driver.D // of dbStats, likewise
	Data   backend.Backend

	Asked map[string]int // how often it was asked for each command
	set   *Set
}

// New returns a set of members; one without a name gets one.
func New(name string, members ...*Member) *Set {
	s := &Set{Name: name, Term: 1, Oplog: 48 * time.Hour, Members: members, version: 1}
	s.clock = func() time.Time { return time.Now().Add(s.Ahead) }
	for i, m := range members {
		m.set, m.Asked = s, map[string]int{}
		if m.Host == "" {
			m.Host = fmt.Sprintf("%s-%d:27017", name, i)
		}
	}
	return s
}

// Change changes the set or its members.
func (s *Set) Change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Reconfigure changes what replSetGetConfig tells.
func (s *Set) Reconfigure(do func()) {
	s.Change(func() {
		do()
		s.version++
	})
}

// Elect makes a member primary, in a new term.
func (s *Set) Elect(member *Member) {
	s.Change(func() {
		for _, m := range s.Members {
			if m.State == "PRIMARY" {
				m.State = "SECONDARY"
			}
		}
		member.State = "PRIMARY"
		s.Term++
	})
}

func (s *Set) primaryLocked() *Member {
	for _, m := range s.Members {
		if m.State == "PRIMARY" && !m.Down {
			return m
		}
	}
	return nil
}

// Run implements backend.Backend: the member answers.
func (m *Member) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	name, _, _ := bson.First(req.Body)
	m.set.mu.Lock()
	m.Asked[name]++
	down, silent, data := m.Down, m.Silent, m.Data
	reply, known := m.answerLocked(name)
	_, prefers := bson.Get(req.Body, "$readPreference")
	refuses := m.State != "PRIMARY" && !prefers
	m.set.mu.Unlock()
	switch {
	case down:
		return nil, fmt.Errorf("%w: connection refused by %s", backend.ErrUnavailable, m.Host)
	case silent:
		<-ctx.Done()
		return nil, ctx.Err()
	case known:
		return marshal(reply), nil
	case refuses:
		return marshal(failure(mongoerr.NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")), nil
	case data == nil:
		return marshal(failure(mongoerr.CommandNotFound, "no such command: '"+name+"'")), nil
	}
	return data.Run(ctx, req)
}

// Abilities implements backend.Backend.
func (m *Member) Abilities() backend.Abilities { return backend.Abilities{} }

// Close implements backend.Backend: the member goes on.
func (m *Member) Close() error { return nil }

// Whole is the set, or the cluster, as a URI of all its members leads to it. It is a deployment.Dialer.
type Whole struct {
	hosts func() []string
	dial  func(host string) backend.Backend
	run   func(ctx context.Context, req *backend.Request) (bson.Document, error)
}

// Whole returns the backend on all of the set.
func (s *Set) Whole() *Whole {
	w := &Whole{hosts: s.hosts, dial: s.dial}
	w.run = func(ctx context.Context, req *backend.Request) (bson.Document, error) {
		m, err := s.choose(req.Body)
		if err != nil {
			return nil, err
		}
		return m.Run(ctx, req)
	}
	return w
}

// choose picks a member by a command's read preference.
func (s *Set) choose(body bson.Document) (*Member, error) {
	preference, _ := bson.Get(body, "$readPreference")
	v, _ := bson.Get(preference.Data, "mode")
	mode, _ := v.StringValueOK()
	s.mu.Lock()
	defer s.mu.Unlock()
	primary := s.primaryLocked()
	if primary != nil && (mode == "" || mode == "primary" || mode == "primaryPreferred") {
		return primary, nil
	}
	for _, m := range s.Members {
		if mode != "" && mode != "primary" && m.State == "SECONDARY" && !m.Down {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: no server for read preference %q", backend.ErrUnavailable, mode)
}

func (s *Set) hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Host)
	}
	return all
}

// dial returns nil where the set has no such member.
func (s *Set) dial(host string) backend.Backend {
	for _, m := range s.Members {
		if m.Host == host {
			return m
		}
	}
	return nil
}

// Run implements backend.Backend.
func (w *Whole) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	return w.run(ctx, req)
}

// Abilities implements backend.Backend.
func (w *Whole) Abilities() backend.Abilities { return backend.Abilities{} }

// Close implements backend.Backend.
func (w *Whole) Close() error { return nil }

// Hosts implements deployment.Dialer.
func (w *Whole) Hosts() []string { return w.hosts() }

// Dial implements deployment.Dialer.
func (w *Whole) Dial(_ context.Context, host string) (backend.Backend, error) {
	if b := w.dial(host); b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%w: no such host: %s", backend.ErrUnavailable, host)
}
