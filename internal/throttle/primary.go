package throttle

import (
	"context"
	"fmt"
)

// primaryProbe looks whether each replica set has a primary, and the one that it had. A new one stops until lag and latency are normal again.
type primaryProbe struct {
	*view
	known map[string]leadership // by set
}

type leadership struct {
	host string
	term int64
}

func newPrimaryProbe(v *view) *primaryProbe {
	return &primaryProbe{view: v, known: map[string]leadership{}}
}

// Name implements Probe.
func (*primaryProbe) Name() string { return Primary }

// Look implements Probe.
func (p *primaryProbe) Look(ctx context.Context) (Verdict, error) {
	sets, err := p.readSets(ctx)
	if err != nil {
		return Verdict{}, err
	}
	out := going
	for i := range sets {
		now := leadership{sets[i].Primary, sets[i].Term}
		if now.host == "" {
			out = worst(out, Verdict{State: Stop, Probe: Primary, Reason: sets[i].Name + " has no primary"})
			continue
		}
		before, known := p.known[sets[i].Name]
		p.known[sets[i].Name] = now
		if known && before != now {
			out = Verdict{State: Stop, Probe: Primary, Holds: true, Reason: fmt.Sprintf("%s has a new primary, %s, after %s", sets[i].Name, now.host, before.host)}
		}
	}
	return out, nil
}
