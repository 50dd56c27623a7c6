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

// line gives out the places of a server's pool, first come, first served. Nobody waits longer than patience, and nobody joins when the first in the line has
// waited for half of that: then whoever joined would wait in vain, or keep others waiting. Safe for concurrent use.
type line struct {
	places   int
	patience time.Duration

	mu struct {
		sync.Mutex
		taken   int
		waiting list.List // of *waiter
	}
}

// waiter is a command in the line.
type waiter struct {
	since time.Time
	turn  chan struct{} // closed when it has a place
}

func newLine(places int, patience time.Duration) *line {
	return &line{places: places, patience: patience}
}

// enter takes a place, which leave gives back. It reports whether it had to wait.
func (l *line) enter(ctx context.Context) (waited bool, err error) {
	l.mu.Lock()
	if l.mu.waiting.Len() == 0 && l.mu.taken < l.places {
		l.mu.taken++
		l.mu.Unlock()
		return false, nil
	}
	now := time.Now()
	if l.tooLongLocked(now) {
		n := l.mu.waiting.Len()
		l.mu.Unlock()
		return false, fmt.Errorf("%w: %d, the first for more than %v, for %d connections", errLong, n, l.patience/2, l.places)
	}
	w := &waiter{since: now, turn: make(chan struct{})}
	at := l.mu.waiting.PushBack(w)
	l.mu.Unlock()

	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	select {
	case <-w.turn:
		return true, nil
	case <-timer.C:
		err = fmt.Errorf("%w: %v, %d connections are in use", errWaited, l.patience, l.places)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if l.give(at, w) {
		return true, nil
	}
	return true, err
}

func (l *line) tooLongLocked(now time.Time) bool {
	first := l.mu.waiting.Front()
	return first != nil && now.Sub(first.Value.(*waiter).since) >= l.patience/2
}

// give takes a waiter out of the line, unless its turn has come meanwhile, which it reports.
func (l *line) give(at *list.Element, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn:
		return true
	default:
		l.mu.waiting.Remove(at)
		return false
	}
}

// leave gives a place back, to the first in the line.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.mu.waiting.Front()
	if first == nil {
		l.mu.taken--
		return
	}
	l.mu.waiting.Remove(first)
	close(first.Value.(*waiter).turn)
}

// figures are how many places are taken, and how many wait.
func (l *line) figures() (taken, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.taken, l.mu.waiting.Len()
}
