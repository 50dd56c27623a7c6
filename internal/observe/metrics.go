package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"oxbow/internal/mongoerr"
)

// other stands in labels for all that has no series of its own.
const other = "other"

// Metrics are one gateway's. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	failed   *prometheus.CounterVec
	took     map[string]prometheus.Observer // by command, never changed after New
}

// buckets are the upper bounds of a command's time, in seconds: from a point read in memory to MongoDB's idea of very slow.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}

// New returns the metrics of a gateway that has these commands.
func New(commands []string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), took: make(map[string]prometheus.Observer, len(commands)+1)}
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oxbow_command_duration_seconds", Help: "Time of commands, from the end of their message to the end of their answer.", Buckets: buckets,
	}, []string{"command"})
	m.failed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oxbow_command_errors_total", Help: "Commands that answered ok: 0, by MongoDB's name of the error.",
	}, []string{"command", "error"})
	for _, name := range commands {
		m.took[name] = took.WithLabelValues(name)
	}
	m.took[other] = took.WithLabelValues(other)
	m.registry.MustRegister(took, m.failed, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Add adds figures that are read when metrics are asked for.
func (m *Metrics) Add(c prometheus.Collector) { m.registry.MustRegister(c) }

// Gatherer gives all figures.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Command notes a command that has been answered; code is 0 when it succeeded.
func (m *Metrics) Command(name string, took time.Duration, code mongoerr.Code) {
	observer, known := m.took[name]
	if !known {
		name, observer = other, m.took[other]
	}
	observer.Observe(took.Seconds())
	if code == 0 {
		return
	}
	label := other
	if code.Known() {
		label = code.String()
	}
	m.failed.WithLabelValues(name, label).Inc()
}
