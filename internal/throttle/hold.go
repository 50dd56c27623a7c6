package throttle

import "time"

// settles are the probes whose figures a new primary upsets: it has to catch up, and its cache is cold.
var settles = []string{Lag, Latency, Canary}

// hold keeps a Stop that Holds until the settling probes have looked after it and say go.
type hold struct {
	verdict Verdict
	since   time.Time // the zero time: nothing is held
}

// over returns the verdict that is held, if one is.
func (h *hold) over(now time.Time, v Verdict, findings []Finding) (Verdict, bool) {
	if v.Holds {
		if h.since.IsZero() || h.verdict.Reason != v.Reason {
			h.since = now
		}
		h.verdict = v
		return v, true
	}
	if h.since.IsZero() {
		return Verdict{}, false
	}
	waits := h.waitsFor(now, findings)
	if waits == "" {
		h.since = time.Time{}
		return Verdict{}, false
	}
	held := h.verdict
	held.Reason += "; waiting for: " + waits
	return held, true
}

// waitsFor is what is not normal yet, "" when all is.
func (h *hold) waitsFor(now time.Time, findings []Finding) string {
	for _, name := range settles {
		for i := range findings {
			f := &findings[i]
			if f.Probe != name || f.Absent != "" {
				continue
			}
			if !f.Began.After(h.since) {
				return name + " looks again"
			}
			if v := f.judged(now); v.State != Go {
				return v.Reason
			}
		}
	}
	return ""
}
