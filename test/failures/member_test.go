package failures

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// member is one server of a set. What it holds outlives its crashes. Everything but its constants is guarded by the set's lock, so that it runs one
// command at a time.
type member struct {
	set       *set
	id        int
	address   string
	listener  net.Listener
	processID driver.ObjectID

	engine    *embedded.Backend
	log       []entry
	committed int // entries that it knows to lie on a majority
	term      int
	primary   bool
	acked     []int     // of a primary: how far each member's log is known to agree with its own
	lonely    time.Time // since when it is a primary without a majority
	barred    time.Time // until when it does not stand

	up       bool
	life     int   // how often it was started: commands of a former life are not answered
	version  int64 // of what hello tells
	side     int   // members of one side reach each other
	stalled  bool  // it takes commands and does nothing
	refusing bool  // it takes no connections
	slow     time.Duration
	faults   []fault // of its next data commands
	conns    map[*conn]bool
	lastConn int64
}

// command is one command as it came, in memory of its own.
type command struct {
	name      string
	database  string
	body      bson.Document
	sequences []backend.Sequence
}

func newMember(t testing.TB, s *set, id int) *member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &member{
		set: s, id: id, listener: l, address: l.Addr().String(), processID: driver.NewObjectID(), engine: openEngine(),
		up: true, version: 1, conns: map[*conn]bool{},
	}
}

// openEngine opens an empty engine in memory.
func openEngine() *embedded.Backend {
	e, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "member", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
	if err != nil {
		panic(err) // nothing that a test could cause
	}
	return e
}

// runsLocked reports whether it does anything at all.
func (m *member) runsLocked() bool { return m.up && !m.stalled }

// turnedLocked notes that hello tells something else from now on.
func (m *member) turnedLocked() {
	m.version++
	m.set.changed.Broadcast()
}

// goDownLocked is a crash: its connections break, and what it was doing is never answered.
func (m *member) goDownLocked() {
	m.up, m.primary = false, false
	m.life++
	for c := range m.conns {
		c.nc.Close()
	}
	m.turnedLocked()
}

// deposeLocked makes it a secondary.
func (m *member) deposeLocked() {
	m.primary, m.lonely = false, time.Time{}
	m.turnedLocked()
}

// standLocked lets it become primary if a majority votes for it: if nobody in reach has more in its log.
func (m *member) standLocked(now time.Time) bool {
	voters := m.set.groupLocked(m)
	if !m.runsLocked() || now.Before(m.barred) || !m.set.majority(len(voters)) {
		return false
	}
	for _, v := range voters {
		if v.newerLocked(m) {
			return false
		}
	}
	m.set.term++
	for _, v := range voters {
		v.term = m.set.term
		if v.primary {
			v.deposeLocked()
		}
	}
	m.primary, m.acked = true, make([]int, len(m.set.members))
	m.log = append(m.log, entry{term: m.term})
	m.turnedLocked()
	return true
}

// newerLocked reports whether its log has more than another's.
func (m *member) newerLocked(other *member) bool {
	a, b := m.lastTermLocked(), other.lastTermLocked()
	return a > b || a == b && len(m.log) > len(other.log)
}

func (m *member) lastTermLocked() int {
	if len(m.log) == 0 {
		return 0
	}
	return m.log[len(m.log)-1].term
}

// pushLocked brings a primary's log to the members that it reaches, and notes what a majority has.
func (m *member) pushLocked() {
	for _, f := range m.set.members {
		switch {
		case f == m || !m.set.linkedLocked(m, f):
			continue
		case f.term > m.term:
			m.term = f.term
			m.deposeLocked()
			return
		}
		f.term = m.term
		if f.primary {
			f.deposeLocked()
		}
		f.followLocked(m.log)
		m.acked[f.id] = len(m.log)
		f.committed = min(m.committed, len(f.log))
	}
	m.acked[m.id] = len(m.log)
	for at := len(m.log); at > m.committed && m.log[at-1].term == m.term; at-- {
		have := 0
		for _, n := range m.acked {
			if n >= at {
				have++
			}
		}
		if m.set.majority(have) {
			m.committed = at
			break
		}
	}
}

// followLocked makes the log and the data equal to a primary's: what the primary does not have is rolled back.
func (m *member) followLocked(log []entry) {
	same := min(len(m.log), len(log))
	for same > 0 && m.log[same-1].term != log[same-1].term {
		same--
	}
	if same < len(m.log) {
		m.set.rollbacks++
		m.engine.Close()
		m.engine, m.log = openEngine(), nil
		same = 0
	}
	for _, e := range log[same:] {
		if e.command != nil {
			m.applyLocked(e.command)
		}
	}
	m.log = append(m.log, log[same:]...)
}

// applyLocked runs a command on the member's own data.
func (m *member) applyLocked(cmd *command) bson.Document {
	reply, err := m.engine.Run(context.Background(), &backend.Request{Body: without(cmd.body, "writeConcern", "readConcern"), Sequences: cmd.sequences})
	if err != nil {
		panic(fmt.Sprintf("member %s: %v", m.address, err)) // the engine is open while the set is
	}
	return reply
}

// writes are the commands that go through the log.
var writes = map[string]bool{
	"insert": true, "update": true, "delete": true, "findAndModify": true, "create": true, "drop": true, "dropDatabase": true,
	"createIndexes": true, "dropIndexes": true, "renameCollection": true,
}

// run runs a command. False: it is not answered, since the member has crashed.
func (m *member) run(cmd *command) (bson.Document, bool) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	life := m.life
	switch {
	case !m.up:
		return nil, false
	case writes[cmd.name]:
		return m.writeLocked(cmd, life)
	}
	return m.readLocked(cmd, life)
}

// writeLocked runs a write, and waits for the majority where it asks for one.
func (m *member) writeLocked(cmd *command, life int) (bson.Document, bool) {
	if !m.primary {
		return m.errorLocked(mongoerr.NotWritablePrimary, "not primary", cmd), true
	}
	reply := m.applyLocked(cmd)
	if backend.Check(reply) != nil {
		return reply, true
	}
	m.log = append(m.log, entry{m.term, cmd})
	m.set.kick()
	if !asksForMajority(cmd.body) {
		return reply, true
	}
	lasts, answers := m.awaitMajorityLocked(life)
	if !lasts {
		reply = m.concernError(reply, mongoerr.PrimarySteppedDown, cmd)
	}
	return reply, answers
}

// readLocked runs a read. A majority read sees what will last and all of it, since it waits until the member certainly leads and what was read
// certainly lasts. (MongoDB promises that for linearizable reads; here it makes every mistake of a gateway show in the history.)
func (m *member) readLocked(cmd *command, life int) (bson.Document, bool) {
	if !m.primary && !allowsSecondary(cmd.body) {
		return m.errorLocked(mongoerr.NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false", cmd), true
	}
	if levelOf(cmd.body) != "majority" {
		return m.applyLocked(cmd), true
	}
	for m.primary && !m.set.leadsLocked(m) && m.life == life {
		m.set.changed.Wait()
	}
	var reply bson.Document
	lasts, answers := m.primary, m.life == life
	if lasts && answers {
		reply = m.applyLocked(cmd)
		lasts, answers = m.awaitMajorityLocked(life)
	}
	if !lasts {
		reply = m.errorLocked(mongoerr.InterruptedDueToReplState, "operation was interrupted", cmd)
	}
	return reply, answers
}

// awaitMajorityLocked waits until a majority has all of a primary's log, or the member is primary no longer (lasts is false), or has crashed (answers is).
func (m *member) awaitMajorityLocked(life int) (lasts, answers bool) {
	at, term := len(m.log), m.term
	for {
		switch {
		case m.life != life:
			return false, false
		case !m.primary || m.term != term:
			return false, true
		case m.committed >= at:
			return true, true
		}
		m.set.changed.Wait()
	}
}

// stepDown makes it a secondary that does not stand again for a while. The others get what they lack before, as far as it reaches them.
func (m *member) stepDown(barred time.Duration) {
	m.change(func() {
		m.barred = time.Now().Add(barred)
		if m.primary && m.runsLocked() {
			m.pushLocked()
		}
		if m.primary {
			m.deposeLocked()
		}
	})
}

// down crashes it, and comeUp starts it again with all that it had.
func (m *member) down() { m.change(m.goDownLocked) }

func (m *member) comeUp() {
	m.change(func() {
		if !m.up {
			m.up = true
			m.turnedLocked()
		}
	})
}

// refuse breaks its connections and has it take no new ones, or takes them again.
func (m *member) refuse(on bool) {
	m.change(func() {
		m.refusing = on
		for c := range m.conns {
			if on {
				c.nc.Close()
			}
		}
	})
}

// change changes something about the member.
func (m *member) change(do func()) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	do()
	m.set.changed.Broadcast()
}
