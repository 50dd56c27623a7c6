package throttle

import (
	"context"
	"fmt"
	"time"

	"oxbow/internal/deployment"
)

// lagProbe looks at how far the worst member with data is behind its primary, less its configured delay. A member that is away goes on to fall behind.
type lagProbe struct {
	*view
	seen map[string]time.Time // the last write that a member was known to have, by host
}

func newLagProbe(v *view) *lagProbe { return &lagProbe{view: v, seen: map[string]time.Time{}} }

// Name implements Probe.
func (*lagProbe) Name() string { return Lag }

// Look implements Probe.
func (p *lagProbe) Look(ctx context.Context) (Verdict, error) {
	sets, err := p.readSets(ctx)
	if err != nil {
		return Verdict{}, err
	}
	out := going
	for i := range sets {
		latest := latestWrite(&sets[i])
		for j := range sets[i].Members {
			if m := &sets[i].Members[j]; m.HoldsData() && !p.settings.Load().Ignores(m.Host) {
				out = worst(out, p.ofMember(*m, latest))
			}
		}
	}
	return out, nil
}

// latestWrite is the last write of the primary, or of the member that has got furthest where there is none.
func latestWrite(s *deployment.Set) time.Time {
	if leader := s.Leader(); leader != nil {
		return leader.Applied
	}
	var latest time.Time
	for i := range s.Members {
		if s.Members[i].Applied.After(latest) {
			latest = s.Members[i].Applied
		}
	}
	return latest
}

func (p *lagProbe) ofMember(m deployment.Member, latest time.Time) Verdict {
	if m.Applied.IsZero() {
		m.Applied = p.seen[m.Host]
	} else {
		p.seen[m.Host] = m.Applied
	}
	if m.Applied.IsZero() {
		return Verdict{State: Stop, Probe: Lag, Reason: fmt.Sprintf("nobody knows how far %s is behind: it is %s", m.Host, m.State)}
	}
	what := "the lag of " + m.Host
	if m.Delay > 0 {
		what += fmt.Sprintf(", beyond its delay of %v,", m.Delay)
	}
	if m.State == deployment.Unreachable {
		what += ", which is unreachable,"
	}
	return p.judge(Lag, what, m.Behind(latest).Seconds())
}
