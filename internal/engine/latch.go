package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// latches keep writers of the same _id or the same unique key apart, from the first read until the batch is visible. A latch is the hash of a key:
// two keys that share one only wait for each other.
//
// Deadlock is ruled out by order: a writer takes latches in ascending order of their number, and all of _ids are below all of
// unique keys; so one that knows its unique keys only after it has read the document takes them after its _ids.
type latches struct {
	shards [latchShards]latchShard
}

const latchShards = 64

type latchShard struct {
	mu   sync.Mutex
	held map[latch][]chan struct{} // who waits, first come first served
}

// latch is one latch's number.
type latch uint64

const uniqueLatch latch = 1 << 63

// idLatch returns the latch of a document's whole key.
func idLatch(documentKey []byte) latch { return latch(xxhash.Sum64(documentKey)) &^ uniqueLatch }

// keyLatch returns the latch of an index entry's fields.
func keyLatch(fields []byte) latch { return latch(xxhash.Sum64(fields)) | uniqueLatch }

func (l *latches) init() {
	for i := range l.shards {
		l.shards[i].held = make(map[latch][]chan struct{})
	}
}

// acquire takes the latches, which it sorts and rids of repeats, and returns them for release. None of them may be held by the
// caller, nor may a greater one. It holds none when ctx ends first, and returns the error of that.
func (l *latches) acquire(ctx context.Context, all []latch) ([]latch, error) {
	slices.Sort(all)
	all = slices.Compact(all)
	for i, one := range all {
		if err := l.take(ctx, one); err != nil {
			l.release(all[:i])
			return nil, err
		}
	}
	return all, nil
}

func (l *latches) take(ctx context.Context, one latch) error {
	turn := l.queue(one)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !l.unqueue(one, turn) {
		l.release([]latch{one}) // it was given in the same moment
	}
	return interrupted(ctx)
}

// queue takes a latch, or returns the channel that is closed once it has been given to the caller.
func (l *latches) queue(one latch) chan struct{} {
	s := &l.shards[one%latchShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, held := s.held[one]
	if !held {
		s.held[one] = nil
		return nil
	}
	turn := make(chan struct{})
	s.held[one] = append(waiting, turn)
	return turn
}

// unqueue stops waiting. It reports false if the latch has been given already.
func (l *latches) unqueue(one latch, turn chan struct{}) bool {
	s := &l.shards[one%latchShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.held[one], turn)
	if at < 0 {
		return false
	}
	s.held[one] = slices.Delete(s.held[one], at, at+1)
	return true
}

// release gives the latches to whoever waits for them.
func (l *latches) release(all []latch) {
	for _, one := range all {
		s := &l.shards[one%latchShards]
		s.mu.Lock()
		if waiting := s.held[one]; len(waiting) > 0 {
			s.held[one] = waiting[1:]
			close(waiting[0])
		} else {
			delete(s.held, one)
		}
		s.mu.Unlock()
	}
}
