package remote

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of commands that got no place.
var (
	errWaited = errors.New("waited too long for a connection")
	errLong   = errors.New("too many commands wait for a connection")
)

// line gives out the places of a server's pool, first come, first served, and with them the connections that other commands have left. Nobody waits longer
// than patience, and nobody joins when the first in the line has waited for half of that: then whoever joined would wait in vain, or keep others waiting.
// Safe for concurrent use.
type line struct {
	places   int
	patience time.Duration

	mu struct {
		sync.Mutex
		taken   int
		waiting list.List // of *waiter
		idle    []*loan   // never more than places that are not taken; the one used last is the last
	}
}

// waiter is a command in the line.
type waiter struct {
	since time.Time
	turn  chan struct{} // closed when it has a place
	left  *loan         // with the place; nil: none
}

func newLine(places int, patience time.Duration) *line {
	return &line{places: places, patience: patience}
}

// enter takes a place, which leave gives back, and a connection that another command has left, if there is one. It reports whether it had to wait.
func (l *line) enter(ctx context.Context) (left *loan, waited bool, err error) {
	l.mu.Lock()
	if l.mu.waiting.Len() == 0 && l.mu.taken < l.places {
		l.mu.taken++
		if last := len(l.mu.idle) - 1; last >= 0 {
			left, l.mu.idle[last] = l.mu.idle[last], nil
			l.mu.idle = l.mu.idle[:last]
		}
		l.mu.Unlock()
		return left, false, nil
	}
	now := time.Now()
	if l.tooLongLocked(now) {
		n := l.mu.waiting.Len()
		l.mu.Unlock()
		return nil, false, fmt.Errorf("%w: %d, the first for more than %v, for %d connections", errLong, n, l.patience/2, l.places)
	}
	w := &waiter{since: now, turn: make(chan struct{})}
	at := l.mu.waiting.PushBack(w)
	l.mu.Unlock()

	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	select {
	case <-w.turn:
		return w.left, true, nil
	case <-timer.C:
		err = fmt.Errorf("%w: %v, %d connections are in use", errWaited, l.patience, l.places)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if l.withdraw(at, w) {
		return nil, true, err
	}
	return w.left, true, nil
}

func (l *line) tooLongLocked(now time.Time) bool {
	first := l.mu.waiting.Front()
	return first != nil && now.Sub(first.Value.(*waiter).since) >= l.patience/2
}

// withdraw takes a waiter out of the line; false if its turn has come meanwhile.
func (l *line) withdraw(at *list.Element, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn:
		return false
	default:
		l.mu.waiting.Remove(at)
		return true
	}
}

// leave gives a place back, to the first in the line, with a connection that the next command may use, nil for none.
func (l *line) leave(left *loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.mu.waiting.Front()
	if first == nil {
		l.mu.taken--
		if left != nil {
			l.mu.idle = append(l.mu.idle, left)
		}
		return
	}
	w := l.mu.waiting.Remove(first).(*waiter)
	w.left = left
	close(w.turn)
}

// busy is how many commands use a connection or wait for one.
func (l *line) busy() int {
	taken, waiting := l.figures()
	return taken + waiting
}

// figures are how many places are taken, and how many wait.
func (l *line) figures() (taken, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.taken, l.mu.waiting.Len()
}
