package throttle

import "time"

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

// reason tells why the pace is not the full one though nothing is said against it. It does not change while the pace rises.
func (r *ramp) reason() string {
	if r.last.Reason == "" {
		return "the pace rises: a job begins slowly"
	}
	return "the pace rises again, after: " + r.last.Reason
}
