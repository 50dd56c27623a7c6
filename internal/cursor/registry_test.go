package cursor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// numbers yields the documents {n: 0}, {n: 1}, … up to a count, and notes how often it was closed.
type numbers struct {
	left   int
	next   int
	block  chan struct{} // when set, NextBatch waits for it or for its context
	mu     sync.Mutex
	closed int
}

func (c *numbers) NextBatch(ctx context.Context, dst []byte, maxDocs, maxBytes int, _ *memory.Account) ([]byte, int, bool, error) {
	if c.block != nil {
		select {
		case <-c.block:
		case <-ctx.Done():
			return dst, 0, false, context.Cause(ctx)
		}
	}
	n := 0
	for ; c.left > 0 && (maxDocs == 0 || n < maxDocs) && (n == 0 || len(dst) < maxBytes); n++ {
		dst = bsoncore.AppendDocumentElement(dst, "n", bsoncore.NewDocumentBuilder().AppendInt32("n", int32(c.next)).Build())
		c.left--
		c.next++
	}
	return dst, n, c.left > 0, nil
}

func (c *numbers) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *numbers) closings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func session(b byte) *SessionID { return &SessionID{UUID: [16]byte{b}} }

func mustAdd(t *testing.T, r *Registry, c Content, o Options) int64 {
	t.Helper()
	id, err := r.Add(c, o, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// pinError is the code that a use is refused with, or 0; an allowed use is given back at once.
func pinError(t *testing.T, r *Registry, u Use) mongoerr.Code {
	t.Helper()
	p, _, err := r.Pin(t.Context(), u)
	if err == nil {
		if err := p.Unpin(true, time.Now()); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a client's error: %v", err)
	}
	return e.Code
}

func TestWhoMayUseACursor(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	free := mustAdd(t, r, &numbers{left: 3}, Options{Namespace: "a.b"})
	held := mustAdd(t, r, &numbers{left: 3}, Options{Namespace: "a.b", Session: session(1)})
	for _, c := range []struct {
		name string
		use  Use
		want mongoerr.Code
	}{
		{"its own", Use{ID: free, Namespace: "a.b"}, 0},
		{"its own in its session", Use{ID: held, Namespace: "a.b", Session: session(1)}, 0},
		{"unknown id", Use{ID: free ^ held ^ 1, Namespace: "a.b"}, mongoerr.CursorNotFound},
		{"id 0", Use{ID: 0, Namespace: "a.b"}, mongoerr.CursorNotFound},
		{"another namespace", Use{ID: free, Namespace: "a.c"}, mongoerr.Unauthorized},
		{"another user", Use{ID: free, Namespace: "a.b", User: "eve"}, mongoerr.Unauthorized},
		{"a session where there was none", Use{ID: free, Namespace: "a.b", Session: session(1)}, 50799},
		{"no session where there was one", Use{ID: held, Namespace: "a.b"}, 50800},
		{"another session", Use{ID: held, Namespace: "a.b", Session: session(2)}, 50801},
	} {
		if got := pinError(t, r, c.use); got != c.want {
			t.Errorf("%s: code %d, want %d", c.name, got, c.want)
		}
	}
	if infos, _ := r.List(); len(infos) != 2 {
		t.Errorf("%d cursors are left of 2: a refused use must not cost one", len(infos))
	}
}

func TestIdsAreUnguessable(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	seen := map[int64]bool{}
	for range 1000 {
		id := mustAdd(t, r, &numbers{}, Options{})
		if id <= 0 || seen[id] || seen[id-1] || seen[id+1] {
			t.Fatalf("id %d is not positive, not new or next to another one", id)
		}
		seen[id] = true
	}
}

func TestOneUseAtATime(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	c := &numbers{left: 3}
	u := Use{ID: mustAdd(t, r, c, Options{Namespace: "a.b"}), Namespace: "a.b"}
	p, ctx, err := r.Pin(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if got := pinError(t, r, u); got != mongoerr.CursorInUse {
		t.Fatalf("second use: code %d", got)
	}
	_, n, more, err := nextBatch(p, ctx, nil, 2, 1<<20, nil)
	if n != 2 || !more || err != nil {
		t.Fatal(n, more, err)
	}
	if err := p.Unpin(true, time.Now()); err != nil {
		t.Fatal(err)
	}
	infos, _ := r.List()
	if len(infos) != 1 || infos[0].Docs != 2 || infos[0].Batches != 1 || infos[0].InUse {
		t.Fatalf("listed as %+v", infos)
	}
	p, ctx, err = r.Pin(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if _, n, more, _ = nextBatch(p, ctx, nil, 2, 1<<20, nil); n != 1 || more {
		t.Fatal(n, more)
	}
	if err := p.Unpin(false, time.Now()); err != nil || c.closings() != 1 {
		t.Fatal("an exhausted cursor is closed once", err, c.closings())
	}
	if got := pinError(t, r, u); got != mongoerr.CursorNotFound {
		t.Fatalf("after the end: code %d", got)
	}
}

func TestKillOfACursorInUseEndsItsCommand(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	c := &numbers{left: 1, block: make(chan struct{})}
	u := Use{ID: mustAdd(t, r, c, Options{Namespace: "a.b", Session: session(1)}), Namespace: "a.b", Session: session(1)}
	p, ctx, err := r.Pin(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, _, _, err := nextBatch(p, ctx, nil, 0, 1<<20, nil)
		done <- err
	}()
	if n := r.KillSessions(*session(1), *session(2)); n != 1 {
		t.Fatalf("killed %d cursors", n)
	}
	if err := <-done; !mongoerr.Is(err, mongoerr.CursorKilled) {
		t.Fatalf("its command got %v", err)
	}
	if c.closings() != 0 {
		t.Fatal("closed while in use")
	}
	if err := p.Unpin(true, time.Now()); err != nil || c.closings() != 1 {
		t.Fatal("not closed once after its use", err, c.closings())
	}
	if got := pinError(t, r, u); got != mongoerr.CursorNotFound {
		t.Fatalf("after the kill: code %d", got)
	}
}

func TestKilledForAReason(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	c := &numbers{left: 1}
	u := Use{ID: mustAdd(t, r, c, Options{Namespace: "a.b"}), Namespace: "a.b"}
	mustAdd(t, r, &numbers{}, Options{Namespace: "a.c"})
	n := r.KillWhere(func(i Info) bool { return i.Namespace == "a.b" }, mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped"))
	if n != 1 || c.closings() != 1 {
		t.Fatalf("killed %d, closed %d times", n, c.closings())
	}
	if got := pinError(t, r, u); got != mongoerr.QueryPlanKilled {
		t.Fatalf("next use: code %d", got)
	}
	if got := pinError(t, r, u); got != mongoerr.CursorNotFound {
		t.Fatalf("use after that: code %d", got)
	}
	if infos, totals := r.List(); len(infos) != 1 || totals.Killed != 1 {
		t.Fatalf("%d cursors left, totals %+v", len(infos), totals)
	}
}

func TestKillByOwner(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	c := &numbers{}
	id := mustAdd(t, r, c, Options{Namespace: "a.b", Session: session(1)})
	if _, err := r.Kill(Use{ID: id, Namespace: "a.c"}); !mongoerr.Is(err, mongoerr.Unauthorized) {
		t.Fatalf("kill on another namespace: %v", err)
	}
	if ok, err := r.Kill(Use{ID: id, Namespace: "a.b"}); !ok || err != nil || c.closings() != 1 {
		t.Fatal(ok, err, c.closings())
	}
	if ok, err := r.Kill(Use{ID: id, Namespace: "a.b"}); ok || err != nil {
		t.Fatal("killed twice", ok, err)
	}
}

func TestIdleCursorsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(10*time.Minute, nil)
		idle, used, kept, pinned := &numbers{left: 9}, &numbers{left: 9}, &numbers{left: 9}, &numbers{left: 9}
		mustAdd(t, r, idle, Options{Namespace: "a.b"})
		u := Use{ID: mustAdd(t, r, used, Options{Namespace: "a.b"}), Namespace: "a.b"}
		mustAdd(t, r, kept, Options{Namespace: "a.b", NoTimeout: true})
		p, _, err := r.Pin(t.Context(), Use{ID: mustAdd(t, r, pinned, Options{Namespace: "a.b"}), Namespace: "a.b"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if n := r.Sweep(time.Now()); n != 0 {
			t.Fatalf("%d ended after 6 minutes", n)
		}
		pinError(t, r, u)
		time.Sleep(5 * time.Minute)
		if n := r.Sweep(time.Now()); n != 1 || idle.closings() != 1 {
			t.Fatalf("%d ended after 11 minutes, the idle one %d times", n, idle.closings())
		}
		if used.closings()+kept.closings()+pinned.closings() != 0 {
			t.Fatal("ended a cursor that was used, kept or in use")
		}
		if err := p.Unpin(true, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		r.Sweep(time.Now())
		if used.closings() != 1 || pinned.closings() != 1 || kept.closings() != 0 {
			t.Fatal("after a day only the cursor without a timeout lives")
		}
		if _, totals := r.List(); totals.TimedOut != 3 || totals.Opened != 4 {
			t.Fatalf("totals %+v", totals)
		}
	})
}

func TestClosedRegistryTakesNothing(t *testing.T) {
	r := NewRegistry(IdleTimeout, nil)
	before, after := &numbers{}, &numbers{}
	mustAdd(t, r, before, Options{})
	r.Close()
	if _, err := r.Add(after, Options{}, time.Now()); !mongoerr.Is(err, mongoerr.ShutdownInProgress) {
		t.Fatalf("add after close: %v", err)
	}
	if before.closings() != 1 || after.closings() != 1 {
		t.Fatal("contents are left open")
	}
}

// nextBatch takes a batch of a cursor in use, as getMore does.
func nextBatch(p *Pinned, ctx context.Context, dst []byte, maxDocs, maxBytes int, account *memory.Account) ([]byte, int, bool, error) {
	dst, n, more, err := p.Content().(Batches).NextBatch(ctx, dst, maxDocs, maxBytes, account)
	p.Served(n)
	return dst, n, more, err
}
