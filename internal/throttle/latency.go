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

// latencyProbe looks at how long the application's commands take, as the gateway sees them: their p99, against what is usual or outright.
type latencyProbe struct {
	source   Source // nil: no traffic goes through here
	settings *Live
	traffic  *traffic
	usual    usual
}

// A p99 that is too long is so over latencySpan, and still over latencyReset. Of a few seconds alone it is chance: a flush or a compaction makes it twice what
// it is all in all. Of many alone it would keep a job that has slowed slow for as long. It is how alerts on error budgets look at two windows
// (https://sre.google/workbook/alerting-on-slos/). It takes latencyLeast commands to tell.
const (
	latencySpan  = 20 * time.Second
	latencyReset = 5 * time.Second
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
	if p.traffic.idle(now, latencySpan) {
		p.usual.note(now, took.Seconds())
	}
	if lately, n := p.source.Quantile(now, latencyReset, .99); n > 0 {
		took = min(took, lately)
	}
	return judgeTime(now, p.settings.Load(), Latency, "the p99 of the application's commands", took, &p.usual), nil
}

// judgeTime judges a time against what is usual, or outright.
func judgeTime(now time.Time, s Settings, probe, what string, took time.Duration, u *usual) Verdict {
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
