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

// The search begins low. It doubles in growTwice until it gave way once, and from half of where that was it adds a part a second. Where something goes on to
// be said against it, it goes down.
const (
	searchFrom = 500
	searchMost = 1e6
	growTwice  = 2.0  // seconds
	growSlowly = 0.02 // a second
	giveWay    = 0.05 // a second
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
		if s.ceiling == 0 || s.full < s.ceiling/2 {
			s.full *= 1 + passed/growTwice
		} else {
			s.full *= 1 + growSlowly*passed
		}
	}
	s.full = min(max(s.full, searchFrom), searchMost)
	return s.full
}
