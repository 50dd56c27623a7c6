package observe

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/backend"
	"oxbow/internal/exec"
)

var (
	openDesc      = prometheus.NewDesc("oxbow_backend_connections", "Open connections to a backend that commands go over.", []string{"backend"}, nil)
	inUseDesc     = prometheus.NewDesc("oxbow_backend_connections_in_use", "Connections to a backend that run a command.", []string{"backend"}, nil)
	waitingDesc   = prometheus.NewDesc("oxbow_backend_waiting", "Commands that wait for a connection to a backend, or for a server of it that takes them.", []string{"backend", "for"}, nil)
	turnedDesc    = prometheus.NewDesc("oxbow_backend_refused_total", "Commands turned away at once, by an open circuit or a long line for connections.", []string{"backend"}, nil)
	circuitDesc   = prometheus.NewDesc("oxbow_backend_circuit", "1 for the state that a backend's circuit is in.", []string{"backend", "state"}, nil)
	lanesDesc     = prometheus.NewDesc("oxbow_fanout_lanes", "Lanes of fan-outs: how many there are, and how many are taken.", []string{"state"}, nil)
	wantingDesc   = prometheus.NewDesc("oxbow_fanout_wanting", "Commands that go to fewer partitions at a time than they could, since no lane is free.", nil, nil)
	fanoutDesc    = prometheus.NewDesc("oxbow_fanout_partitions", "Partitions that a command, or a part of it, went to.", nil, nil)
	backendsDescs = []*prometheus.Desc{openDesc, inUseDesc, waitingDesc, turnedDesc, circuitDesc, lanesDesc, wantingDesc, fanoutDesc}
)

// Backends reads how a gateway uses its backends when it is asked.
type Backends struct {
	Remote map[string]Remote // by the name of the backend
	Lanes  *exec.Lanes
}

// Remote is a backend on the other side of a network.
type Remote interface {
	Figures() backend.Figures
}

// Describe implements prometheus.Collector.
func (b *Backends) Describe(out chan<- *prometheus.Desc) {
	for _, d := range backendsDescs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *Backends) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Remote)) {
		f := b.Remote[name].Figures()
		gauge(openDesc, f.Open, name)
		gauge(inUseDesc, f.InUse, name)
		gauge(waitingDesc, f.Lined, name, "connection")
		gauge(waitingDesc, f.Choosing, name, "server")
		out <- prometheus.MustNewConstMetric(turnedDesc, prometheus.CounterValue, float64(f.Refused), name)
		for _, state := range backend.Circuits {
			is := 0
			if state == f.Circuit {
				is = 1
			}
			gauge(circuitDesc, is, name, state)
		}
	}
	f := b.Lanes.Figures()
	gauge(lanesDesc, f.Limit, "limit")
	gauge(lanesDesc, f.Taken, "taken")
	gauge(wantingDesc, f.Wanting)
	out <- fanoutHistogram(f.Sizes)
}

func fanoutHistogram(s *exec.Sizes) prometheus.Metric {
	buckets := make(map[float64]uint64, len(exec.SizeBounds))
	n := uint64(0)
	for i, bound := range exec.SizeBounds {
		n += s.Counts[i].Load()
		buckets[float64(bound)] = n
	}
	n += s.Counts[len(exec.SizeBounds)].Load()
	return prometheus.MustNewConstHistogram(fanoutDesc, n, float64(s.Sum.Load()), buckets)
}
