package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/catalog"
	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/memory"
	"oxbow/internal/route"
)

// maxCollections is how many collections have series of their own; the rest is added up under "other".
const maxCollections = 200

// Sources are what the figures of a gateway are read from.
type Sources struct {
	Counters *command.Counters
	Table    *command.Table
	Cursors  *cursor.Registry
	Sessions *cursor.Sessions
	Memory   *memory.Budget
	Catalog  func() *catalog.Snapshot
	Sharing  func() (catalog.Sharing, bool)
	Now      func() time.Time
}

// Figures reads a gateway's figures when they are asked for.
type Figures struct {
	from   Sources
	simple []simple
}

// simple is a figure without labels of its own.
type simple struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func() int64
}

var (
	opsDesc        = prometheus.NewDesc("oxbow_operations_total", "Statements as serverStatus counts them in opcounters.", []string{"type"}, nil)
	refusedDesc    = prometheus.NewDesc("oxbow_refused_total", "Connections, logins and messages refused by a limit, by the limit's key.", []string{"limit"}, nil)
	guardedDesc    = prometheus.NewDesc("oxbow_guarded_total", "Commands that no index serves and a guard is set for, by what became of them.", []string{"outcome"}, nil)
	memoryDesc     = prometheus.NewDesc("oxbow_memory_reserved_bytes", "Memory of the clients' part, by use.", []string{"use"}, nil)
	commandsDesc   = prometheus.NewDesc("oxbow_collection_commands_total", "Commands by collection; the busiest have a series each.", []string{"collection"}, nil)
	secondsDesc    = prometheus.NewDesc("oxbow_collection_seconds_total", "Time of commands by collection; the busiest have a series each.", []string{"collection"}, nil)
	partitionsDesc = prometheus.NewDesc("oxbow_partitions", "Partitions by collection and state.", []string{"collection", "state"}, nil)
	leaseDesc      = prometheus.NewDesc("oxbow_catalog_lease", "Whether this gateway has its lease on a shared catalog: without it no collection with a layout is served.", nil, nil)
	seenDesc       = prometheus.NewDesc("oxbow_catalog_seen_version", "The version of a shared catalog that this gateway goes by: the same on all of them while nothing changes.", nil, nil)
	ageDesc        = prometheus.NewDesc("oxbow_catalog_age_seconds", "Time since this gateway knew all that others had changed in a shared catalog.", nil, nil)
	gatewaysDesc   = prometheus.NewDesc("oxbow_catalog_gateways", "Gateways on a shared catalog, this one among them: live, or with a lease that was ended.", []string{"state"}, nil)
	oldestDesc     = prometheus.NewDesc("oxbow_oldest_partition_age_seconds", "Age of the end of the oldest partition in sight, of collections with keep: it stays below keep and a range.", []string{"collection"}, nil)
)

// NewFigures returns the figures of a gateway.
func NewFigures(from Sources) *Figures {
	f := &Figures{from: from}
	add := func(name, help string, kind prometheus.ValueType, read func() int64) {
		f.simple = append(f.simple, simple{prometheus.NewDesc("oxbow_"+name, help, nil, nil), kind, read})
	}
	c := from.Counters
	add("connections", "Open connections.", prometheus.GaugeValue, c.ConnectionsCurrent.Load)
	add("connections_total", "Connections accepted.", prometheus.CounterValue, c.ConnectionsTotal.Load)
	add("connections_rejected_total", "Connections turned away because there were too many.", prometheus.CounterValue, c.ConnectionsRejected.Load)
	add("bad_messages_total", "Connections that ended because of bytes that are not the protocol.", prometheus.CounterValue, c.BadMessages.Load)
	add("panics_total", "Commands and connections that ended in a defect of Oxbow.", prometheus.CounterValue, c.Panics.Load)
	add("received_bytes_total", "Bytes received, as they were on the socket.", prometheus.CounterValue, c.PhysicalIn.Load)
	add("sent_bytes_total", "Bytes sent, as they were on the socket.", prometheus.CounterValue, c.PhysicalOut.Load)
	add("running_commands", "Commands that run.", prometheus.GaugeValue, func() int64 { return int64(from.Table.Operations().Running()) })
	add("sessions", "Sessions known.", prometheus.GaugeValue, func() int64 { return int64(from.Sessions.Len()) })
	add("cursors", "Open cursors.", prometheus.GaugeValue, func() int64 { return int64(from.Cursors.Len()) })
	totals := from.Cursors.Totals
	add("cursors_opened_total", "Cursors opened.", prometheus.CounterValue, func() int64 { return totals().Opened })
	add("cursors_timed_out_total", "Cursors closed because nobody read them.", prometheus.CounterValue, func() int64 { return totals().TimedOut })
	add("memory_limit_bytes", "The clients' part of the memory; 0: without limit.", prometheus.GaugeValue, func() int64 { return from.Memory.Figures().Limit })
	add("memory_refused_total", "Commands that found no memory left.", prometheus.CounterValue, func() int64 { return from.Memory.Figures().Refused })
	add("catalog_version", "Changes of the catalog since the start.", prometheus.GaugeValue, func() int64 { return from.Catalog().Version })
	return f
}

// Describe implements prometheus.Collector.
func (f *Figures) Describe(out chan<- *prometheus.Desc) {
	for _, s := range f.simple {
		out <- s.desc
	}
	for _, d := range []*prometheus.Desc{opsDesc, refusedDesc, guardedDesc, memoryDesc, commandsDesc, secondsDesc, partitionsDesc, oldestDesc, leaseDesc, seenDesc, ageDesc, gatewaysDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *Figures) Collect(out chan<- prometheus.Metric) {
	for _, s := range f.simple {
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, float64(s.read()))
	}
	for name, n := range f.from.Counters.Operations() {
		out <- prometheus.MustNewConstMetric(opsDesc, prometheus.CounterValue, float64(n), name)
	}
	for limit, n := range f.from.Counters.RefusedByLimits() {
		out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(n), limit)
	}
	for outcome, n := range f.from.Counters.GuardedCommands() {
		out <- prometheus.MustNewConstMetric(guardedDesc, prometheus.CounterValue, float64(n), outcome)
	}
	for use, n := range f.from.Memory.Figures().By {
		out <- prometheus.MustNewConstMetric(memoryDesc, prometheus.GaugeValue, float64(n), memory.Use(use).String())
	}
	f.collectUsages(out)
	f.collectPartitions(out)
	f.collectSharing(out)
}

// collectUsages gives the collections that took the most time, and the rest in one.
func (f *Figures) collectUsages(out chan<- prometheus.Metric) {
	list := f.from.Table.Usages()
	slices.SortFunc(list, func(a, b command.Usage) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Namespace, b.Namespace))
	})
	rest := command.Usage{Namespace: other}
	for i, u := range list {
		if i < maxCollections {
			sendUsage(out, u)
			continue
		}
		rest.Count += u.Count
		rest.Took += u.Took
	}
	if rest.Count > 0 {
		sendUsage(out, rest)
	}
}

func sendUsage(out chan<- prometheus.Metric, u command.Usage) {
	out <- prometheus.MustNewConstMetric(commandsDesc, prometheus.CounterValue, float64(u.Count), u.Namespace)
	out <- prometheus.MustNewConstMetric(secondsDesc, prometheus.CounterValue, u.Took.Seconds(), u.Namespace)
}

// collectPartitions counts the partitions of the configured collections, whose number no client can raise.
func (f *Figures) collectPartitions(out chan<- prometheus.Metric) {
	now := f.from.Now().UnixMilli()
	for _, c := range f.from.Catalog().Collections("") {
		counts := map[route.State]int{}
		oldest := route.MaxTime
		for i := range c.All {
			counts[c.All[i].State]++
			if c.All[i].State == route.Active {
				oldest = min(oldest, c.All[i].End)
			}
		}
		for _, s := range route.States() {
			out <- prometheus.MustNewConstMetric(partitionsDesc, prometheus.GaugeValue, float64(counts[s]), c.Namespace(), s.String())
		}
		if t := c.Table.Layout.Time; t != nil && t.Keep > 0 && oldest != route.MaxTime {
			out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, float64(now-oldest)/1000, c.Namespace())
		}
	}
}

// collectSharing tells of the gateways on a shared catalog.
func (f *Figures) collectSharing(out chan<- prometheus.Metric) {
	s, shared := f.from.Sharing()
	if !shared {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	lease, live, ended := 0.0, 0, 0
	if s.Lease {
		lease, live = 1, 1
	}
	for _, o := range s.Others {
		if o.Ended {
			ended++
		} else {
			live++
		}
	}
	gauge(leaseDesc, lease)
	gauge(seenDesc, float64(s.Seen))
	gauge(ageDesc, s.Age.Seconds())
	gauge(gatewaysDesc, float64(live), "live")
	gauge(gatewaysDesc, float64(ended), "ended")
}
