package throttle

import (
	"context"
	"fmt"
	"strings"

	"oxbow/internal/deployment"
)

// majorityProbe looks whether a majority can confirm writes. With two members with data and an arbiter it can't as soon as one of them is away, though there
// is a primary; and a majority that needs a delayed member confirms when the delay is over.
type majorityProbe struct{ *view }

// Name implements Probe.
func (majorityProbe) Name() string { return Majority }

// Look implements Probe.
func (p majorityProbe) Look(ctx context.Context) (Verdict, error) {
	sets, err := p.readSets(ctx)
	if err != nil {
		return Verdict{}, err
	}
	for i := range sets {
		if reason := withoutMajority(&sets[i]); reason != "" {
			return Verdict{State: Stop, Probe: Majority, Reason: reason}, nil
		}
	}
	return going, nil
}

// withoutMajority is why a set can't confirm writes, or "".
func withoutMajority(s *deployment.Set) string {
	up := 0
	var away, delayed []string
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.Votes == 0 || !m.HoldsData():
		case m.State != deployment.Primary && m.State != deployment.Secondary:
			away = append(away, m.Host)
		case m.Delay > 0:
			delayed = append(delayed, m.Host)
		default:
			up++
		}
	}
	switch {
	case up >= s.Needed:
		return ""
	case up+len(delayed) < s.Needed:
		return fmt.Sprintf("no majority of %s can confirm writes: %d members with data have to, and %d are there, without %s", s.Name, s.Needed, up+len(delayed), strings.Join(away, ", "))
	}
	return fmt.Sprintf("a majority of %s needs a delayed member, which confirms after its delay: %s", s.Name, strings.Join(delayed, ", "))
}
