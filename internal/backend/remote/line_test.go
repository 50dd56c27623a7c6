package remote

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLineIsFair: who came first has the next place, and no more have one than there are.
func TestLineIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, time.Minute)
		var wait sync.WaitGroup
		var mu sync.Mutex
		var order []int
		for i := range 10 {
			wait.Go(func() {
				if _, waited, err := l.enter(t.Context()); err != nil || waited != (i > 1) {
					t.Errorf("%d waits: %v, %v", i, waited, err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if taken, _ := l.figures(); taken > 2 {
					t.Errorf("%d places are taken", taken)
				}
				time.Sleep(time.Second)
				l.leave(nil)
			})
			synctest.Wait() // so that they come one after the other
		}
		wait.Wait()
		for i, n := range order {
			if i/2 != n/2 { // two at a time
				t.Fatalf("the order is %v", order)
			}
		}
		if taken, waiting := l.figures(); taken != 0 || waiting != 0 {
			t.Errorf("%d places are taken, %d wait", taken, waiting)
		}
	})
}

// TestLineEnds: nobody waits longer than the line's patience or their own context, and nobody joins a line that does not move.
func TestLineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 10*time.Second)
		if _, _, err := l.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, _, err := l.enter(ctx)
			return time.Since(began), err
		}
		go func() {
			if took, err := waited(t.Context()); !errors.Is(err, errWaited) || took != 10*time.Second {
				t.Errorf("%v after %v", err, took)
			}
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if took, err := waited(short); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("with a second: %v after %v", err, took)
		}
		time.Sleep(3999 * time.Millisecond)
		go func() {
			if took, err := waited(t.Context()); err != nil || took != 5002*time.Millisecond {
				t.Errorf("who came before half of the patience was over: %v after %v", err, took)
			}
		}()
		time.Sleep(time.Millisecond)
		if took, err := waited(t.Context()); !errors.Is(err, errLong) || took != 0 {
			t.Errorf("at half of the patience: %v after %v", err, took)
		}
		time.Sleep(5001 * time.Millisecond)
		l.leave(nil)
		synctest.Wait()
		if taken, waiting := l.figures(); taken != 1 || waiting != 0 {
			t.Errorf("%d places are taken, %d wait", taken, waiting)
		}
		l.leave(nil)
	})
}

// TestLinePassesConnectionsOn: a connection goes with its place to whoever waits, else the one used last to who comes next.
func TestLinePassesConnectionsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, time.Minute)
		enter := func() *loan {
			left, _, err := l.enter(t.Context())
			if err != nil {
				t.Error(err)
			}
			return left
		}
		for range 2 {
			if enter() != nil {
				t.Fatal("a line begins with connections")
			}
		}
		first, second := &loan{}, &loan{}
		passed := make(chan *loan)
		go func() { passed <- enter() }()
		synctest.Wait()
		l.leave(first)
		if <-passed != first {
			t.Error("the place went without its connection")
		}
		l.leave(second)
		l.leave(first)
		if enter() != first || enter() != second {
			t.Error("the connection used last is not the next")
		}
	})
}
