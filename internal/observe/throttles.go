package observe

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/throttle"
)

var (
	shareDesc     = prometheus.NewDesc("oxbow_throttle_share", "Share of the full pace that jobs on a backend have: 0 while they are stopped, above 1 while they hurry.", []string{"backend"}, nil)
	probeDesc     = prometheus.NewDesc("oxbow_throttle_probe_share", "Share of the full pace that a probe would give; a probe that sees nothing on a backend is left out.", []string{"backend", "probe"}, nil)
	reasonDesc    = prometheus.NewDesc("oxbow_throttle_reason", "The probe that decides about the pace now, ramp while it rises; none at the full pace.", []string{"backend", "probe", "state"}, nil)
	throttledDesc = prometheus.NewDesc("oxbow_throttle_seconds_total", "Time in which a probe has slowed or stopped.", []string{"backend", "probe", "state"}, nil)
)

// Throttles reads the throttles of a gateway's backends when it is asked.
type Throttles struct {
	// Running are those of the backends on which jobs have run, by the backend's name.
	Running func() map[string]*throttle.Throttle
}

// Describe implements prometheus.Collector.
func (t *Throttles) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{shareDesc, probeDesc, reasonDesc, throttledDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (t *Throttles) Collect(out chan<- prometheus.Metric) {
	running := t.Running()
	for _, name := range slices.Sorted(maps.Keys(running)) {
		collectThrottle(out, name, running[name])
	}
}

func collectThrottle(out chan<- prometheus.Metric, name string, t *throttle.Throttle) {
	verdict := t.Verdict()
	out <- prometheus.MustNewConstMetric(shareDesc, prometheus.GaugeValue, verdict.Share, name)
	if verdict.Probe != "" {
		out <- prometheus.MustNewConstMetric(reasonDesc, prometheus.GaugeValue, 1, name, verdict.Probe, verdict.State.String())
	}
	for _, f := range t.Findings() {
		if f.Absent == "" && !f.At.IsZero() {
			out <- prometheus.MustNewConstMetric(probeDesc, prometheus.GaugeValue, f.Verdict.Share, name, f.Probe)
		}
	}
	totals := t.Totals()
	for _, probe := range slices.Sorted(maps.Keys(totals)) {
		out <- prometheus.MustNewConstMetric(throttledDesc, prometheus.CounterValue, totals[probe].Slow.Seconds(), name, probe, throttle.Slow.String())
		out <- prometheus.MustNewConstMetric(throttledDesc, prometheus.CounterValue, totals[probe].Stop.Seconds(), name, probe, throttle.Stop.String())
	}
}
