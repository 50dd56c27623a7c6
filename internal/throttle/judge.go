package throttle

import "fmt"

// slowest is the smallest share that a probe gives before it stops.
const slowest = 0.05

// judge makes a verdict of a figure. what names it, in the words that stand before the figure in a reason.
func judge(s Settings, probe, what string, value float64) Verdict {
	t := s.Of(probe)
	v := judgeBy(t, value)
	if v.State != Go {
		spec, _ := specOf(probe)
		v.Probe = probe
		v.Reason = fmt.Sprintf("%s is %s (slow from %s, stop at %s)", what, spec.shown(value), spec.format(t.Slow, false), spec.format(t.Stop, false))
	}
	return v
}

// judgeBy makes a verdict without a reason. Thresholds may grow upwards or downwards.
func judgeBy(t Threshold, value float64) Verdict {
	switch bad := (value - t.Slow) / (t.Stop - t.Slow); {
	case bad >= 1:
		return Verdict{State: Stop}
	case bad > 0:
		return Verdict{State: Slow, Share: max(slowest, 1-bad)}
	}
	return going
}

// shown writes a measured figure: with the digits that matter.
func (s *spec) shown(value float64) string {
	if s.kind == shares {
		return fmt.Sprintf("%.1f%%", value*100)
	}
	return s.format(value, false)
}

// worst returns the worse of two verdicts of one probe.
func worst(a, b Verdict) Verdict {
	if b.State > a.State || b.State == a.State && b.Share < a.Share {
		return b
	}
	return a
}
