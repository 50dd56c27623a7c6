package embedded

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// closeable is a stream that tells whether it was closed.
type closeable struct {
	noDocuments
	closed bool
}

func (c *closeable) Close() error {
	c.closed = true
	return nil
}

// register opens a cursor that is idle since then.
func register(s *cursors, then time.Time, patient bool) (*cursor, *closeable) {
	in := &closeable{}
	c := &cursor{namespace: "d.c", in: query.Documents(in), limit: -1, patient: patient}
	s.add(c, then)
	return c, in
}

func TestIdleCursorsAreClosed(t *testing.T) {
	then := time.Unix(1000, 0)
	s := newCursors(10*time.Minute, nil)
	_, old := register(s, then, false)
	_, fresh := register(s, then.Add(5*time.Minute), false)
	_, patient := register(s, then, true)
	busy, held := register(s, then, false)
	if _, err := s.take(busy.id, "d.c"); err != nil {
		t.Fatal(err)
	}
	if n := s.closeIdle(then.Add(10*time.Minute - 1)); n != 0 {
		t.Errorf("%d cursors closed before their time", n)
	}
	if n := s.closeIdle(then.Add(10 * time.Minute)); n != 1 || !old.closed {
		t.Errorf("%d cursors closed, the old one: %v", n, old.closed)
	}
	if fresh.closed || patient.closed || held.closed {
		t.Error("a cursor was closed that is fresh, patient or in use")
	}
	if open, forever := s.count(); open != 3 || forever != 1 {
		t.Errorf("%d open cursors, %d without timeout", open, forever)
	}
}

func TestCursorInUse(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newCursors(time.Minute, nil)
	c, in := register(s, now, false)
	if _, err := s.take(c.id, "d.c"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.take(c.id, "d.c"); !mongoerr.Is(err, mongoerr.CursorInUse) {
		t.Errorf("a second getMore gives %v", err)
	}
	if !s.kill(c.id) {
		t.Error("kill found no cursor")
	}
	if in.closed {
		t.Error("a cursor was closed while a command holds it")
	}
	if _, err := s.take(c.id, "d.c"); !mongoerr.Is(err, mongoerr.CursorNotFound) {
		t.Errorf("getMore on a killed cursor gives %v", err)
	}
	if s.kill(c.id) {
		t.Error("a cursor was killed twice")
	}
	if s.giveBack(c, now) {
		t.Error("a killed cursor was taken back")
	}
	if open, _ := s.count(); open != 0 {
		t.Errorf("%d cursors left", open)
	}
}

// deadlines is a context that calls asked whenever somebody asks for its deadline.
type deadlines struct {
	context.Context
	asked func()
}

func (d deadlines) Deadline() (time.Time, bool) {
	d.asked()
	return time.Now().Add(time.Hour), true
}

// TestCursorKilledAtItsFirstBatch: whatever kills a cursor while its first batch is being made, nobody is given the id of a cursor that nobody
// closes any more.
func TestCursorKilledAtItsFirstBatch(t *testing.T) {
	b := filled(t, 10)
	killAll := func() {
		b.cursors.mu.Lock()
		ids := slices.Collect(maps.Keys(b.cursors.byID))
		b.cursors.mu.Unlock()
		for _, id := range ids {
			b.cursors.kill(id)
		}
	}
	table, _ := b.db.Table(engine.Name{Database: "d", Collection: "c"})
	found, err := table.Find(t.Context(), engine.Query{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cursor{namespace: "d.c", in: found, limit: -1, budget: time.Hour}
	reply, err := b.firstBatch(deadlines{t.Context(), killAll}, c, 2, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := backend.ParseCursorReply(reply)
	if err != nil {
		t.Fatal(err)
	}
	if open, _ := b.cursors.count(); open != 1 || !b.cursors.kill(answer.ID) {
		t.Errorf("%d cursors are open, the reply's is %d", open, answer.ID)
	}
	if n := b.Stats().Snapshots; n != 0 {
		t.Errorf("%d snapshots are held", n)
	}
}

// TestUsageOfDroppedTables: an operation that ends after its table was dropped leaves no name behind.
func TestUsageOfDroppedTables(t *testing.T) {
	b := filled(t, 1)
	name := engine.Name{Database: "d", Collection: "c"}
	start := time.Now()
	b.usage.note(name, usageQuery, start)
	if got := b.usage.names(); !slices.Equal(got, []engine.Name{name}) {
		t.Errorf("counted: %v", got)
	}
	if err := b.db.DropTable(name); err != nil {
		t.Fatal(err)
	}
	b.usage.forget(name)
	b.usage.note(name, usageQuery, start)
	if got := b.usage.names(); len(got) != 0 {
		t.Errorf("counted after the drop: %v", got)
	}
}
