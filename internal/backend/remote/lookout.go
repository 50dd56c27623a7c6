package remote

import (
	"context"
	"sync/atomic"
	"time"
)

// lookout ends the reads and writes of links when the contexts of their commands have ended. It looks at all links while commands are under way, since a
// context that has to tell of its end costs every command five allocations.
type lookout struct {
	asleep atomic.Bool
	wake   chan struct{} // gets one from whoever finds it asleep
}

// How often a lookout looks, which is how late a command may learn of its end, and after how many looks at links without a command it sleeps.
const (
	lookEvery  = 5 * time.Millisecond
	emptyLooks = 100
)

func newLookout() *lookout {
	o := &lookout{wake: make(chan struct{}, 1)}
	o.asleep.Store(true)
	return o
}

// rouse has the lookout look from now on. A command calls it once its context is on its link.
func (o *lookout) rouse() {
	if o.asleep.Load() && o.asleep.CompareAndSwap(true, false) {
		o.wake <- struct{}{}
	}
}

// run looks until ctx ends. look reports whether any command is under way.
func (o *lookout) run(ctx context.Context, look func() bool) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		ticker.Stop()
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		ticker.Reset(lookEvery)
		for empty := 0; empty < emptyLooks; empty++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if look() {
				empty = -1
			}
		}
		o.asleep.Store(true)
		if look() { // it came after the last look, and perhaps before the sleep
			o.rouse()
		}
	}
}
