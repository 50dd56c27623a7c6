package throttle

import (
	"context"
	"fmt"
	"time"
)

// Source tells how long the foreground's commands took. A Window is one.
type Source interface {
	// Quantile is the time that a share of the last seconds' commands stayed within, and how many there were.
	Quantile(now time.Time, last time.Duration, share float64) (time.Duration, int)
}

// latencyProbe looks at how long the application's commands take, as the gateway sees them: their p99 of the last seconds, against what is usual or outright.
type latencyProbe struct {
	source   Source // nil: no traffic goes through here
	settings *Live
	traffic  *traffic
	usual    usual
}

// latencySpan is the time whose p99 is looked at, and latencyLeast how many commands it takes to tell one.
const (
	latencySpan  = 5 * time.Second
	latencyLeast = 100
)

// Name implements Probe.
func (*latencyProbe) Name() string { return Latency }

// Look implements Probe.
func (p *latencyProbe) Look(context.Context) (Verdict, error) {
	if p.source == nil {
		return Verdict{}, Absent("no traffic goes through this process")
	}
	now := time.Now()
	took, n := p.source.Quantile(now, latencySpan, .99)
	if n < latencyLeast {
		return Verdict{}, Absent(fmt.Sprintf("too little traffic to tell: %d commands in %v", n, latencySpan))
	}
	return judgeTime(now, p.settings.Load(), Latency, "the p99 of the application's commands", took, &p.usual, p.traffic.idle(now)), nil
}

// judgeTime judges a time against what is usual, or outright, and learns what is usual from it.
func judgeTime(now time.Time, s Settings, probe, what string, took time.Duration, u *usual, idle bool) Verdict {
	if idle {
		u.note(now, took.Seconds())
	}
	t := s.Of(probe)
	if !t.Relative {
		return judge(s, probe, what, took.Seconds())
	}
	if reason := u.missing(now); reason != "" {
		return Verdict{State: Stop, Probe: probe, Reason: what + ": " + reason}
	}
	if took <= s.Floor() {
		return going
	}
	v := judgeBy(t, took.Seconds()/max(u.known, s.Floor().Seconds()))
	if v.State != Go {
		v.Probe = probe
		v.Reason = fmt.Sprintf("%s is %v, and usual is %v (slow from %.4gx, stop at %.4gx)", what, round(took), round(time.Duration(u.known*float64(time.Second))), t.Slow, t.Stop)
	}
	return v
}
