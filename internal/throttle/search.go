package throttle

import "time"

// search finds the full pace of a job without a limit: it rises while nothing is said against it, and gives way when something is.
type search struct {
	full    float64   // documents a second
	ceiling float64   // at which it gave way last; 0: never
	at      time.Time // when it changed last
	bounded time.Time // when a step that had to wait for it was let through last
	slowed  bool
}

// The search begins low, and grows by a part a second: fast until it gave way once, slowly about where that was, and fast again when it has passed that, which was
// chance then. Fast is not in a hurry: what deletes leave for compactions, checkpoints and secondaries to do is felt some seconds later, and for longer than they
// took. Where something goes on to be said against it, it goes down.
const (
	searchFrom = 500
	searchMost = 1e6
	growFast   = 0.1  // a second, so that it doubles in about 7
	growSlowly = 0.02 // a second
	giveWay    = 0.05 // a second
	about      = 0.25 // of where it gave way, above and below
)

func newSearch() search { return search{full: searchFrom} }

// next returns the full pace now. Only a pace that steps wait for rises: else nobody would know what a higher one does.
func (s *search) next(now time.Time, v Verdict) float64 {
	passed := min(now.Sub(s.at).Seconds(), 1)
	if s.at.IsZero() {
		passed = 0
	}
	s.at = now
	switch {
	case v.State != Go && v.Probe != Ramp:
		if !s.slowed {
			s.ceiling = s.full
		}
		s.slowed = true
		if v.State == Slow {
			s.full *= 1 - giveWay*passed
		}
	case v.State == Go:
		s.slowed = false
		if now.Sub(s.bounded) > time.Second {
			break
		}
		if s.full > (1-about)*s.ceiling && s.full < (1+about)*s.ceiling {
			s.full *= 1 + growSlowly*passed
		} else {
			s.full *= 1 + growFast*passed
		}
	}
	s.full = min(max(s.full, searchFrom), searchMost)
	return s.full
}
