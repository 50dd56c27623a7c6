package exec

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// gauge counts what is under way, and remembers the most.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// TestSpread: whatever the numbers, every call is made once, a command has no more under way than its width, all together no more than the lanes and one
// each, and no lane is lost.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lanes, width := rapid.IntRange(1, 6).Draw(r, "lanes"), rapid.IntRange(1, 5).Draw(r, "width")
		sizes := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 6).Draw(r, "sizes")
		synctest.Test(t, func(t *testing.T) {
			e := &Executor{Lanes: NewLanes(lanes), Width: func(string) int { return width }}
			var all gauge
			var wait sync.WaitGroup
			for _, n := range sizes {
				wait.Go(func() {
					var own gauge
					calls := make([]atomic.Int32, n)
					err := e.spread(t.Context(), "", n, func(_ context.Context, i int) error {
						all.enter()
						own.enter()
						time.Sleep(time.Duration(1+i%3) * time.Millisecond)
						own.leave()
						all.leave()
						calls[i].Add(1)
						return nil
					})
					if err != nil || own.most.Load() > int64(width) {
						t.Errorf("%d calls at a time where %d may be, %v", own.most.Load(), width, err)
					}
					for i := range calls {
						if c := calls[i].Load(); c != 1 {
							t.Errorf("call %d was made %d times", i, c)
						}
					}
				})
			}
			wait.Wait()
			if most := all.most.Load(); most > int64(lanes+len(sizes)) {
				t.Errorf("%d calls at a time by %d commands with %d lanes", most, len(sizes), lanes)
			}
			if f := e.Lanes.Figures(); f.Taken != 0 || f.Wanting != 0 {
				t.Errorf("left are %d lanes and %d commands that want one", f.Taken, f.Wanting)
			}
		})
	})
}

// TestLanesGoRound: a command that comes when others have all lanes gets its part of them as soon as a partition is done.
func TestLanesGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Executor{Lanes: NewLanes(4), Width: func(string) int { return 5 }}
		took := func(n int) time.Duration {
			began := time.Now()
			_ = e.spread(t.Context(), "", n, func(context.Context, int) error {
				time.Sleep(time.Second)
				return nil
			})
			return time.Since(began)
		}
		var wait sync.WaitGroup
		var large, small time.Duration
		wait.Go(func() { large = took(100) })
		time.Sleep(10 * time.Millisecond)
		wait.Go(func() { small = took(15) })
		wait.Wait()
		// With half of the lanes it makes three calls a second, alone one.
		if small > 6*time.Second {
			t.Errorf("15 calls beside a large command took %v", small)
		}
		if large > 25*time.Second { // 100 by five a second, and by three for the time of the small one
			t.Errorf("100 calls took %v", large)
		}
	})
}

// TestSpreadInsideSpread: work inside of work does not wait for the lanes that its own command holds.
func TestSpreadInsideSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Executor{Lanes: NewLanes(2)}
		var calls atomic.Int64
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				_ = e.spread(t.Context(), "", 4, func(ctx context.Context, _ int) error {
					return e.spread(ctx, "", 4, func(context.Context, int) error {
						time.Sleep(time.Millisecond)
						calls.Add(1)
						return nil
					})
				})
			})
		}
		wait.Wait() // the test ends here when all are blocked
		if n := calls.Load(); n != 80 {
			t.Errorf("%d calls instead of 80", n)
		}
	})
}

// TestSpreadFails: the first error ends what is under way, and nothing begins after it.
func TestSpreadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Executor{Lanes: NewLanes(8), Width: func(string) int { return 3 }}
		refused := errors.New("refused")
		var calls atomic.Int64
		err := e.spread(t.Context(), "", 20, func(ctx context.Context, i int) error {
			calls.Add(1)
			if i == 1 {
				synctest.Wait() // the others are under way
				return refused
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, refused) || calls.Load() != 3 {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	})
}

// TestSpreadPanics: a panic on another goroutine is one of the command, whose handler answers for it.
func TestSpreadPanics(t *testing.T) {
	e := &Executor{Lanes: NewLanes(4)}
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "no such partition\n") {
			t.Errorf("the panic is %q", text)
		}
		if f := e.Lanes.Figures(); f.Taken != 0 || f.Wanting != 0 {
			t.Errorf("left are %d lanes and %d commands that want one", f.Taken, f.Wanting)
		}
	}()
	_ = e.spread(t.Context(), "", 6, func(_ context.Context, i int) error {
		if i > 0 {
			panic("no such partition")
		}
		return nil
	})
	t.Error("the panic is lost")
}

// TestSpreadOfOne: of one partition there is nothing but the call, on the goroutine that the command came on.
func TestSpreadOfOne(t *testing.T) {
	e := &Executor{Lanes: NewLanes(4)}
	call := func(context.Context, int) error {
		stack := make([]byte, 64<<10)
		if n := runtime.Stack(stack, false); !strings.Contains(string(stack[:n]), "TestSpreadOfOne(") {
			t.Error("it runs on another goroutine")
		}
		return nil
	}
	if err := e.spread(t.Context(), "", 1, call); err != nil {
		t.Error(err)
	}
}

// TestLanesChange: a new number of lanes holds from then on.
func TestLanesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Executor{Lanes: NewLanes(1), Width: func(string) int { return 10 }}
		var under gauge
		done := make(chan error)
		go func() {
			done <- e.spread(t.Context(), "", 100, func(context.Context, int) error {
				under.enter()
				defer under.leave()
				time.Sleep(time.Second)
				return nil
			})
		}()
		for _, lanes := range []int{5, 2, 9} {
			time.Sleep(1500 * time.Millisecond)
			e.Lanes.SetLimit(lanes)
			time.Sleep(1500 * time.Millisecond)
			if n := under.now.Load(); n != int64(lanes+1) {
				t.Errorf("with %d lanes %d calls are under way", lanes, n)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
