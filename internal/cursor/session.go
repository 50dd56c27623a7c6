package cursor

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/mongoerr"
)

// SessionTimeout is how long a session lives unused: logicalSessionTimeoutMinutes of hello.
const SessionTimeout = 30 * time.Minute

// MaxSessions is the number of sessions held at once (MongoDB's parameter maxSessions).
const MaxSessions = 1_000_000

// SessionID names a logical session: the UUID that the client chose, and the user it belongs to ("" while there are no users).
type SessionID struct {
	UUID [16]byte
	User string
}

// String gives the UUID in its usual form.
func (id SessionID) String() string {
	h := hex.EncodeToString(id.UUID[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Append appends what tells a session from all others.
func (id *SessionID) Append(dst []byte) []byte { return append(append(dst, id.UUID[:]...), id.User...) }

// Sessions are the known sessions. Safe for concurrent use.
type Sessions struct {
	timeout time.Duration
	mu      struct {
		sync.RWMutex
		known map[SessionID]*state
	}
}

// state is what is known of a session.
type state struct {
	lastUse atomic.Int64 // nanoseconds since 1970
	times   Times
}

// NewSessions returns an empty set of sessions that live unused for the timeout.
func NewSessions(timeout time.Duration) *Sessions {
	s := &Sessions{timeout: timeout}
	s.mu.known = make(map[SessionID]*state)
	return s
}

// Start makes a session with a random id.
func (s *Sessions) Start(user string, now time.Time) (SessionID, error) {
	id := SessionID{User: user}
	rand.Read(id.UUID[:])
	id.UUID[6] = id.UUID[6]&0x0f | 0x40 // version 4, variant 1 of RFC 9562
	id.UUID[8] = id.UUID[8]&0x3f | 0x80
	return id, s.Touch(id, now)
}

// Touch notes that a session was used. A session not seen before begins with it, as in MongoDB. The error is
// TooManyLogicalSessions.
func (s *Sessions) Touch(id SessionID, now time.Time) error {
	s.mu.RLock()
	known, ok := s.mu.known[id]
	s.mu.RUnlock()
	if ok {
		known.lastUse.Store(now.UnixNano())
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.mu.known[id]; ok {
		known.lastUse.Store(now.UnixNano())
		return nil
	}
	if len(s.mu.known) >= MaxSessions {
		return mongoerr.New(mongoerr.TooManyLogicalSessions, "cannot add session into the cache, %d are open", MaxSessions)
	}
	known = new(state)
	known.lastUse.Store(now.UnixNano())
	s.mu.known[id] = known
	return nil
}

// End forgets sessions; ids that are not there are passed over.
func (s *Sessions) End(ids ...SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.mu.known, id)
	}
}

// Sweep forgets the sessions that were not used for the timeout and returns them, so that their cursors can be killed.
func (s *Sessions) Sweep(now time.Time) []SessionID {
	cutoff := now.Add(-s.timeout).UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	var expired []SessionID
	for id, known := range s.mu.known {
		if known.lastUse.Load() <= cutoff {
			expired = append(expired, id)
			delete(s.mu.known, id)
		}
	}
	return expired
}

// Session is one session as it is listed.
type Session struct {
	ID      SessionID
	LastUse time.Time
}

// List returns the sessions that match, or all for a nil match, in no particular order.
func (s *Sessions) List(match func(SessionID) bool) []Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Session
	for id, known := range s.mu.known {
		if match == nil || match(id) {
			out = append(out, Session{ID: id, LastUse: time.Unix(0, known.lastUse.Load())})
		}
	}
	return out
}

// Known reports whether a session is held.
func (s *Sessions) Known(id SessionID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.known[id] != nil
}

// Times returns what a session has seen of deployments, or nil for one that is not held. They are forgotten with it.
func (s *Sessions) Times(id SessionID) *Times {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known := s.mu.known[id]; known != nil {
		return &known.times
	}
	return nil
}

// Len returns the number of sessions.
func (s *Sessions) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.mu.known)
}
