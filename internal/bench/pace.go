package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// Pacer says when each call is meant to begin: call n at n times an interval from the start, whatever became of the calls before. A token bucket would
// forget what a stall made it miss.
type Pacer struct {
	start    time.Time
	interval float64   // nanoseconds between two calls
	end      time.Time // zero: none
	taken    atomic.Int64
}

// NewPacer paces calls of batch documents at a rate of documents a minute.
func NewPacer(start time.Time, perMinute, batch int, duration time.Duration) *Pacer {
	p := &Pacer{start: start, interval: float64(time.Minute) * float64(batch) / float64(perMinute)}
	if duration > 0 {
		p.end = start.Add(duration)
	}
	return p
}

// Next waits for the next call's time and returns its number and that time, or false when there is no more.
func (p *Pacer) Next(ctx context.Context) (n int64, meant time.Time, ok bool) {
	n = p.taken.Add(1) - 1
	meant = p.start.Add(time.Duration(float64(n) * p.interval))
	now := time.Now()
	if !p.end.IsZero() && (!meant.Before(p.end) || !now.Before(p.end)) {
		return 0, meant, false
	}
	if wait := meant.Sub(now); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return n, meant, ctx.Err() == nil
}

// Due is the number of calls that were meant to begin before an instant.
func (p *Pacer) Due(at time.Time) int64 {
	if !p.end.IsZero() && at.After(p.end) {
		at = p.end
	}
	spent := float64(at.Sub(p.start))
	if spent <= 0 {
		return 0
	}
	n := int64(spent / p.interval)
	if float64(n)*p.interval < spent {
		n++
	}
	return n
}
