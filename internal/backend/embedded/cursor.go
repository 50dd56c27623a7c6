package embedded

import (
	"math/rand/v2"
	"sync"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// cursor is a stream of results that a client reads batch by batch. Whoever has checked it out owns it.
type cursor struct {
	id         int64
	namespace  string
	in         query.Documents
	projection *query.Projection // nil: documents go out whole
	limit      int64             // documents still to give; -1: all
	held       bson.Document     // read from in, but over the last batch's size
	ended      bool              // in has no more
	patient    bool              // never idle: noCursorTimeout
	budget     time.Duration     // what is left of the first command's maxTimeMS; 0: no bound
	memory     memory.Account    // of what it costs to stay open

	idleSince time.Time // guarded by cursors.mu, like the two below
	busy      bool
	killed    bool
}

// cursorBytes is what a cursor that stays open costs beside the documents it holds: compiled query, snapshot, and iterators with the blocks they stand in.
const cursorBytes = 64 << 10

func (c *cursor) close() error {
	c.memory.Close()
	return c.in.Close()
}

// cursors holds the open cursors of a backend.
type cursors struct {
	timeout time.Duration
	memory  *memory.Budget

	mu   sync.Mutex
	byID map[int64]*cursor
}

func newCursors(timeout time.Duration, budget *memory.Budget) *cursors {
	return &cursors{timeout: timeout, memory: budget, byID: map[int64]*cursor{}}
}

// add gives a cursor its id and registers it as idle: ids are random, so that none is guessed or given twice soon. From then on it is no
// longer the caller's. The error is ExceededMemoryLimit.
func (s *cursors) add(c *cursor, now time.Time) (id int64, err error) {
	c.memory = s.memory.Account(memory.Cursors)
	if err := c.memory.Grow(cursorBytes); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c.id == 0 || s.byID[c.id] != nil {
		c.id = rand.Int64()
	}
	c.idleSince = now
	s.byID[c.id] = c
	return c.id, nil
}

// take checks a cursor out for one getMore.
func (s *cursors) take(id int64, namespace string) (*cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	switch {
	case c == nil || c.killed:
		return nil, mongoerr.New(mongoerr.CursorNotFound, "cursor id %d not found", id)
	case c.namespace != namespace:
		return nil, mongoerr.New(mongoerr.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", namespace, c.namespace)
	case c.busy:
		return nil, mongoerr.New(mongoerr.CursorInUse, "cursor id %d is already in use", id)
	}
	c.busy = true
	return c, nil
}

// giveBack checks a cursor in. It reports false if the cursor was killed meanwhile: then it is forgotten, and the caller closes it.
func (s *cursors) giveBack(c *cursor, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.killed {
		delete(s.byID, c.id)
		return false
	}
	c.busy, c.idleSince = false, now
	return true
}

// forget takes a cursor that the caller holds out of the registry.
func (s *cursors) forget(c *cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, c.id)
}

// kill ends a cursor: at once, or when the command that holds it is done. It reports whether there was one.
func (s *cursors) kill(id int64) bool {
	s.mu.Lock()
	c := s.byID[id]
	found := c != nil && !c.killed
	idle := found && !c.busy
	if found {
		c.killed = true
	}
	if idle {
		delete(s.byID, id)
	}
	s.mu.Unlock()
	if idle {
		c.close()
	}
	return found
}

// closeIdle closes the cursors that nobody asked since now minus the timeout, and returns how many.
func (s *cursors) closeIdle(now time.Time) int {
	return s.closeWhere(func(c *cursor) bool { return !c.patient && now.Sub(c.idleSince) >= s.timeout })
}

// closeAll closes every cursor that no command holds.
func (s *cursors) closeAll() { s.closeWhere(func(*cursor) bool { return true }) }

func (s *cursors) closeWhere(chosen func(*cursor) bool) int {
	var gone []*cursor
	s.mu.Lock()
	for id, c := range s.byID {
		if !c.busy && chosen(c) {
			delete(s.byID, id)
			gone = append(gone, c)
		}
	}
	s.mu.Unlock()
	for _, c := range gone {
		c.close()
	}
	return len(gone)
}

// count returns the number of open cursors.
func (s *cursors) count() (open, patient int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byID {
		if c.patient {
			patient++
		}
	}
	return len(s.byID), patient
}
