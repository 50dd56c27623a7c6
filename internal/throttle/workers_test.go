package throttle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oxbow/internal/maintain"
	"oxbow/internal/throttle"
)

// TestWorkersOfAChangingPace has workers share a pace whose share changes while they wait: together they get what it gives, no more and no less.
func TestWorkersOfAChangingPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traffic{took: 10 * time.Millisecond, n: 1000}
		th := started(t, three(), throttle.On{Foreground: s})
		settings, _ := throttle.Parse("latency<10ms..20ms")
		th.SetSettings(settings)
		p := th.Pace(maintain.Limits{Documents: 1000})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var workers sync.WaitGroup
		sent := 0
		for range 8 {
			workers.Go(func() {
				for p.Wait(ctx, 2000, 0) == nil {
					mu.Lock()
					sent += 2000
					mu.Unlock()
				}
			})
		}
		const lasts = 5 * time.Minute
		for at := time.Duration(0); at < lasts; at += 500 * time.Millisecond {
			s.is(14*time.Millisecond+at%(2*time.Second)/1000, 1000) // a share of about a half
			time.Sleep(500 * time.Millisecond)
		}
		cancel()
		workers.Wait()
		if share := float64(sent) / (1000 * lasts.Seconds()); share < .4 || share > .6 {
			t.Errorf("%d documents in %v at 1,000 a second: %.2f, and about a half was given", sent, lasts, share)
		}
	})
}
