package throttle

import (
	"fmt"
	"time"
)

// Ramp is the Probe of a verdict that no probe gives: the pace rises.
const Ramp = "ramp"

// ramp lets a share fall at once and rise slowly, so that what has just slowed is not upset again. It begins low: a job starts as one that was stopped.
type ramp struct {
	share float64
	last  Verdict // what it fell for; the zero Verdict: nothing yet
}

// rise is how much of the full pace is added in a second.
const rise = 0.1

// limit returns what a verdict comes to when this much time has passed since the last.
func (r *ramp) limit(v Verdict, passed time.Duration) Verdict {
	r.share = min(v.Share, r.share+rise*passed.Seconds())
	if v.State != Go {
		r.last = v
	}
	switch {
	case v.State == Stop || r.share >= v.Share:
		return v
	case v.State == Slow || r.share >= 1:
		v.Share = r.share
		return v
	}
	return Verdict{State: Slow, Share: max(r.share, slowest), Probe: Ramp, Reason: r.reason()}
}

// reason tells when the pace is full, and what it was not for.
func (r *ramp) reason() string {
	left := time.Duration((1 - r.share) / rise * float64(time.Second)).Round(time.Second)
	if r.last.Reason == "" {
		return fmt.Sprintf("a job begins slowly: the pace is full in %v", left)
	}
	return fmt.Sprintf("the pace is full again in %v, after: %s", left, r.last.Reason)
}
