package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"oxbow/internal/bench"
)

// demoState is how a demonstration stands at one moment.
type demoState struct {
	at         time.Time
	partitions []partition
	events     []bench.Event // what the gateway's upkeep did so far, oldest first
	totals     bench.Totals
	p99        time.Duration // of inserts in the last seconds
	err        error         // why the rest may be out of date
}

// lately is what rates and latencies are about.
const lately = 5 * time.Second

// look asks the gateway how it stands.
func (d *demo) look(ctx context.Context) demoState {
	ctx, cancel := context.WithTimeout(ctx, lately)
	defer cancel()
	s := demoState{at: time.Now(), totals: d.bench.Totals(), p99: d.bench.InsertP99(lately)}
	if s.partitions, s.err = d.partitions.list(ctx); s.err == nil {
		s.events, s.err = d.bench.Events(ctx)
	}
	return s
}

// follow fills in what a look could not see from the one before: everything where the gateway did not answer, and the documents of a partition
// that is just being dropped.
func (s *demoState) follow(before demoState) {
	if s.err != nil {
		s.partitions, s.events = before.partitions, before.events
		return
	}
	for i, p := range s.partitions {
		if p.State != "dropping" {
			continue
		}
		for _, old := range before.partitions {
			if old.Name == p.Name {
				s.partitions[i].Count = old.Count
			}
		}
	}
}

// change is a partition that is not as it was at the look before.
type change struct {
	partition partition // as seen last
	what      string    // made, hidden, dropped
	event     *bench.Event
}

// changes compares two states, oldest partition first.
func changes(before, after demoState) []change {
	var all []change
	for _, p := range before.partitions {
		i := slices.IndexFunc(after.partitions, func(q partition) bool { return q.Name == p.Name })
		switch {
		case i < 0:
			all = append(all, change{p, "dropped", eventOf(after.events, p.Name, "dropped")})
		case p.State == "active" && after.partitions[i].State == "hidden":
			all = append(all, change{after.partitions[i], "hidden", eventOf(after.events, p.Name, "hidden")})
		}
	}
	for _, p := range after.partitions {
		if !slices.ContainsFunc(before.partitions, func(q partition) bool { return q.Name == p.Name }) {
			all = append(all, change{p, "made", nil})
		}
	}
	return all
}

func eventOf(events []bench.Event, partition, action string) *bench.Event {
	i := slices.IndexFunc(events, func(e bench.Event) bool { return e.Partition == partition && e.Did(action) })
	if i < 0 {
		return nil
	}
	return &events[i]
}

// String tells a change in a line.
func (c change) String() string {
	text := fmt.Sprintf("%-7s %s, %s", c.what, c.partition.Name, c.partition.span())
	if c.what != "made" {
		text += fmt.Sprintf(", %s documents", thousands(c.partition.Count))
	}
	if c.event == nil {
		return text
	}
	if c.what == "dropped" {
		text += ", in " + milliseconds(c.event.Took())
	}
	return text + ": " + c.event.Reason
}

// span is the range of a partition on this machine's clock.
func (p *partition) span() string {
	return p.Start.Local().Format("15:04") + " to " + p.End.Local().Format("15:04")
}

// rate is a number a second between two states.
func rate(before, after demoState, of func(bench.Totals) int64) float64 {
	spent := after.at.Sub(before.at).Seconds()
	if spent <= 0 {
		return 0
	}
	return float64(of(after.totals)-of(before.totals)) / spent
}

func inserted(t bench.Totals) int64 { return t.Inserted }
func updated(t bench.Totals) int64  { return t.Updated }

// thousands writes a number with its thousands apart.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 1
	if n < 0 {
		first = 2
	}
	for i := len(text) - 3; i >= first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
