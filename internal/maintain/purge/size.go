package purge

import (
	"context"
	"sync"
	"time"

	"oxbow/internal/maintain"
)

// A batch begins with leastBatch documents and grows or shrinks until its documents take about wantedTime: a client's command waits about as long
// behind it, and one in a hundred may not, or a purge of a few batches a second is in the p99 whatever its pace.
const (
	leastBatch  = 10
	wantedTime  = 10 * time.Millisecond
	growBelow   = wantedTime / 2
	shrinkAbove = 2 * wantedTime
)

// sizing is how many documents the next delete takes; the workers of a job share one.
type sizing struct {
	mu      sync.Mutex
	now     int
	most    int
	passage time.Duration // the shortest that a batch has taken: a network's and a majority's time, which no smaller batch saves; 0: none yet
}

func newSizing(most int) *sizing { return &sizing{now: min(leastBatch, most), most: most} }

// next is the size of the next batch at a share of the full pace.
func (s *sizing) next(share float64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, int(float64(s.now)*min(1, share)))
}

// took tells how long a full batch took, without its waits for the pace.
func (s *sizing) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passage == 0 || d < s.passage {
		s.passage = d
	}
	switch d -= s.passage; {
	case d > shrinkAbove:
		s.now = max(min(leastBatch, s.most), s.now/2)
	case d < growBelow:
		s.now = min(s.most, s.now+s.now/2+1)
	}
}

// stopwatch is a pace that keeps how long it was waited for.
type stopwatch struct {
	maintain.Pace
	clock  func() time.Time
	waited time.Duration
}

// Wait implements maintain.Pace.
func (s *stopwatch) Wait(ctx context.Context, documents int, bytes int64) error {
	began := s.clock()
	err := s.Pace.Wait(ctx, documents, bytes)
	s.waited += s.clock().Sub(began)
	return err
}
