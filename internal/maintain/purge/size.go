package purge

import (
	"sync"
	"time"
)

// A batch begins with firstBatch documents and grows or shrinks until a delete takes about wantedTime: as long as a client's command may have to wait
// behind it.
const (
	firstBatch  = 200
	leastBatch  = 10
	wantedTime  = 100 * time.Millisecond
	growBelow   = wantedTime / 2
	shrinkAbove = 2 * wantedTime
)

// sizing is how many documents the next delete takes; the workers of a job share one.
type sizing struct {
	mu   sync.Mutex
	now  int
	most int
}

func newSizing(most int) *sizing { return &sizing{now: min(firstBatch, most), most: most} }

// next is the size of the next batch at a share of the full pace.
func (s *sizing) next(share float64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, int(float64(s.now)*min(1, share)))
}

// took tells how long a full batch took.
func (s *sizing) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case d > shrinkAbove:
		s.now = max(min(leastBatch, s.most), s.now/2)
	case d < growBelow:
		s.now = min(s.most, s.now+s.now/2+1)
	}
}
