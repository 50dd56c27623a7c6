package partition

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"oxbow/internal/maintain"
	"oxbow/internal/route"
)

// gate is a throttle that is open or shut.
type gate struct {
	open   bool
	waited int
}

func (g *gate) Wait(context.Context, int, int64) error {
	if g.waited++; !g.open {
		return errors.New("shut")
	}
	return nil
}

func (g *gate) Share() float64        { return 1 }
func (g *gate) Limit(maintain.Limits) {}
func (g *gate) Reason() string        { return "the secondary is 20 s behind" }

// After days of downtime the drops that are due go one by one, as the throttle lets them, but each waits a minute at most.
func TestDropsAfterDowntime(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, hold: 0, ahead: 0}")
	for range 5 {
		r.write()
		r.wall, r.monotonic = r.wall.Add(24*time.Hour), r.monotonic+24*time.Hour
	}
	shut := &gate{}
	r.Runner.opts.Pace = func(string) maintain.Throttle { return shut }
	hidden := func() (n int) {
		for _, s := range r.states() {
			if strings.HasSuffix(s, "hidden") {
				n++
			}
		}
		return n
	}
	r.pass(0)
	if s := r.Statuses(); len(s) != 1 || s[0].Alert == "" && hidden() == 0 {
		t.Fatalf("%+v, %q", s, r.states())
	}
	due := hidden()
	r.pass(time.Second) // the first goes as it is due
	if hidden() != due-1 || shut.waited != 1 {
		t.Fatalf("%q after %d questions, %d were due", r.states(), shut.waited, due)
	}
	s := r.Statuses()[0]
	if s.ID != "retention:fla.log" || s.State != maintain.Running || !strings.Contains(s.Reason, "drops wait: the secondary is 20 s behind") {
		t.Errorf("%+v", s)
	}
	shut.open = true
	r.pass(time.Second)
	if hidden() != 0 {
		t.Errorf("the throttle lets go, and %q", r.states())
	}
	if s := r.Statuses()[0]; s.State != maintain.Waiting || s.Reason != "" || s.Last == nil || !strings.HasPrefix(s.Last.Reason, "dropped fla.log_2026") {
		t.Errorf("%+v", s)
	}
}

func TestPatienceEnds(t *testing.T) {
	r := newRig(t, "{time: {field: time, every: day}, keep: 1d, hold: 0, ahead: 0}")
	for range 5 {
		r.write()
		r.wall, r.monotonic = r.wall.Add(24*time.Hour), r.monotonic+24*time.Hour
	}
	r.Runner.opts.Pace = func(string) maintain.Throttle { return &gate{} }
	r.pass(0)
	for range 20 {
		r.pass(35 * time.Second)
	}
	if slices.ContainsFunc(r.states(), func(s string) bool { return strings.HasSuffix(s, "hidden") }) {
		t.Errorf("never dropped: %q", r.states())
	}
}

func TestOverdue(t *testing.T) {
	at := func(d int) int64 { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC).UnixMilli() }
	keep := &route.Time{Every: route.Day, Zone: time.UTC, Keep: 24 * time.Hour}
	p := route.Partition{Start: at(1), End: at(2), State: route.Active}
	for name, c := range map[string]struct {
		change func(p *route.Partition)
		keep   *route.Time
		now    int64
		want   time.Duration
	}{
		"in time":             {func(*route.Partition) {}, keep, at(3), 0},
		"a day late":          {func(*route.Partition) {}, keep, at(4), 24 * time.Hour},
		"kept for ever":       {func(*route.Partition) {}, &route.Time{Every: route.Day, Zone: time.UTC}, at(9), 0},
		"brought back":        {func(p *route.Partition) { p.Restored = true }, keep, at(9), 0},
		"hidden and held":     {func(p *route.Partition) { p.State, p.Since = route.Hidden, at(4) }, keep, at(4), 0},
		"hidden, not dropped": {func(p *route.Partition) { p.State, p.Since = route.Hidden, at(3) }, keep, at(4), 23 * time.Hour},
	} {
		q := p
		c.change(&q)
		if got := Overdue([]route.Partition{q}, c.keep, time.Hour, c.now); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
