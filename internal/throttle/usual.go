package throttle

import (
	"fmt"
	"slices"
	"time"
)

// usual learns what a latency is while no job's work is under way.
type usual struct {
	values []float64 // seconds; the last are kept
	at     time.Time // of the last
	known  float64   // 0: not yet
	since  time.Time // when it was learned
}

// What is usual is the median of the latest idle seconds. It takes a few of them, is learned anew while a job is stopped or waits for its window, and is
// measured again when it is old: the day's load is not the night's.
const (
	usualLeast = 5
	usualMost  = 60
	usualAge   = time.Hour
)

// note takes what was measured, at most once a second, while nothing of a job is under way.
func (u *usual) note(now time.Time, value float64) {
	if now.Sub(u.at) < time.Second {
		return
	}
	if now.Sub(u.at) > usualMost*time.Second { // what was usual before is of another time
		u.values = nil
	}
	u.at = now
	u.values = append(u.values, value)
	if len(u.values) > usualMost {
		u.values = u.values[1:]
	}
	if len(u.values) < usualLeast {
		return
	}
	sorted := slices.Sorted(slices.Values(u.values))
	u.known, u.since = sorted[len(sorted)/2], now
}

// missing is why nothing can be compared with what is usual, "" where it can.
func (u *usual) missing(now time.Time) string {
	left := usualLeast - len(u.values)
	if now.Sub(u.at) > usualMost*time.Second {
		left = usualLeast
	}
	switch {
	case u.known == 0:
		return fmt.Sprintf("what is usual is not known yet: it is measured for %d s more without work", max(left, 1))
	case now.Sub(u.since) > usualAge:
		return fmt.Sprintf("what was usual is %v old: it is measured again, for %d s more without work", round(now.Sub(u.since)), max(left, 1))
	}
	return ""
}
