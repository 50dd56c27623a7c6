package command

import (
	"context"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// broken is a content that panics.
type broken struct{ content }

func (*broken) NextBatch(context.Context, []byte, int, int, *memory.Account) ([]byte, int, bool, error) {
	panic("on purpose")
}

// TestGetMorePanics: a cursor whose content panics is closed and gone, and so is what it had reserved.
func TestGetMorePanics(t *testing.T) {
	budget := memory.New(1 << 20)
	cursors := cursor.NewRegistry(cursor.IdleTimeout, budget)
	table := newTable(func(d *Deps) { d.Cursors = cursors })
	table.RegisterData(&Data{Cursors: cursors, Now: time.Now, Exec: &exec.Executor{}})
	c := &broken{}
	id, err := cursors.Add(c, cursor.Options{Namespace: "a.b"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if f := budget.Figures(); f.By[memory.Cursors] == 0 {
		t.Errorf("an open cursor reserves nothing: %+v", f)
	}
	more := driver.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "b"}, {Key: "$db", Value: "a"}}
	if got := run(t, table, more); code(got) != mongoerr.InternalError {
		t.Errorf("getMore gives %v", got)
	}
	if got := run(t, table, more); code(got) != mongoerr.CursorNotFound {
		t.Errorf("the next getMore gives %v", got)
	}
	if f := budget.Figures(); c.closed != 1 || f.Used != 0 {
		t.Errorf("closed %d times, %+v", c.closed, f)
	}
}

// TestCursorsFillTheBudget: cursors are opened as long as there is memory for them, and again when some are closed.
func TestCursorsFillTheBudget(t *testing.T) {
	budget := memory.New(64 << 10)
	cursors := cursor.NewRegistry(cursor.IdleTimeout, budget)
	opened := 0
	for ; opened < 1000; opened++ {
		c := &content{}
		if _, err := cursors.Add(c, cursor.Options{Namespace: "a.b"}, time.Now()); err != nil {
			if !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) || c.closed != 1 {
				t.Fatalf("%v, closed %d times", err, c.closed)
			}
			break
		}
	}
	if opened == 0 || opened == 1000 {
		t.Fatalf("%d cursors fit", opened)
	}
	kill := mongoerr.New(mongoerr.QueryPlanKilled, "for a reason")
	if n := cursors.KillWhere(func(cursor.Info) bool { return true }, kill); n != opened {
		t.Errorf("%d of %d killed", n, opened)
	}
	cursors.Close()
	if f := budget.Figures(); f.Used != 0 {
		t.Errorf("%+v", f)
	}
}
