package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oxbow/internal/catalog"
	"oxbow/internal/retention"
	"oxbow/internal/route"
)

// pass is one pass of a Runner.
type pass struct {
	*Runner
	events []Event
	next   time.Duration // when the next one is to be, in monotonic time
}

// look does what is due for one collection, and notes when there will be more to do: soon after, unless something failed or waits for somebody.
func (p *pass) look(ctx context.Context, col *catalog.Collection) {
	ns := col.Namespace()
	_, looked := p.opts.Clock()
	now, stop := p.now(ctx, col)
	if stop != "" {
		p.stop(ns, retention.Decision{Stop: stop})
		return
	}
	in := retention.Input{
		Now: now, Layout: col.Table.Layout, Partitions: col.All, Hold: col.Hold, MaxDue: p.opts.MaxDue, Confirmed: p.confirmed(ns),
	}
	d := retention.Decide(in)
	p.stop(ns, d)
	err := p.carryOut(ctx, col, d)
	p.account(ns, now, err)
	if err != nil || d.Stop != "" {
		return
	}
	after := p.opts.Catalog.Snapshot().Collection(ns)
	if after == nil { // its entry went from the configuration meanwhile
		return
	}
	in.Partitions = after.All
	if next, ok := retention.Next(in); ok {
		p.next = min(p.next, looked+time.Duration(next-now)*time.Millisecond)
		p.mu.Lock()
		p.stateOf(ns).next = time.UnixMilli(next).UTC()
		p.mu.Unlock()
	}
}

// carryOut does what was decided for a collection, up to the first error.
func (p *pass) carryOut(ctx context.Context, col *catalog.Collection, d retention.Decision) error {
	ns := col.Namespace()
	if err := p.makeAhead(ctx, ns, d.Make); err != nil {
		return err
	}
	keep := col.Table.Layout.Time.Keep
	for _, part := range d.Hide {
		e := Event{Collection: ns, Partition: part.Name(), Action: Hidden, Reason: fmt.Sprintf("it ended at %s and keep is %s", instant(part.End), keep)}
		if err := p.do(e, func() error { return p.opts.Catalog.Hide(ctx, ns, part.Name()) }); err != nil {
			return err
		}
	}
	for i, part := range d.Drop {
		// The first drop goes as it is due. What has come together, as after days of downtime, goes one by one.
		if i > 0 && !p.granted(ctx, ns, part.Backend, len(d.Drop)-i) {
			return nil
		}
		e := Event{Collection: ns, Partition: part.Name(), Action: Dropped, Reason: fmt.Sprintf("it was hidden at %s and hold is %s", instant(part.Since), col.Hold)}
		if err := p.do(e, func() error { return p.opts.Catalog.DropPartition(ctx, ns, part.Name()) }); err != nil {
			return err
		}
	}
	p.grant(ns)
	return nil
}

func (p *pass) makeAhead(ctx context.Context, ns string, places []route.Place) error {
	for _, place := range places {
		e := Event{Collection: ns, Action: Made, Reason: fmt.Sprintf("ahead of time, from %s to %s", instant(place.Start), instant(place.End))}
		err := p.do(e, func() error {
			_, err := p.opts.Catalog.Ensure(ctx, ns, []route.Place{place})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// do does what an event tells of and notes it, with the time that it took and its error; nothing where another gateway has done it.
func (p *pass) do(e Event, work func() error) error {
	_, before := p.opts.Clock()
	if e.Err = work(); errors.Is(e.Err, catalog.ErrDecided) {
		return nil
	}
	_, after := p.opts.Clock()
	e.Took = after - before
	p.note(e)
	return e.Err
}

// stop remembers why retention has stopped for a collection, if it has, and notes that when it is new.
func (p *pass) stop(ns string, d retention.Decision) {
	p.mu.Lock()
	s := p.stateOf(ns)
	// Two reasons that differ in figures only are one.
	begun := d.Stop != "" && s.stopped == ""
	s.stopped, s.waiting, s.confirmed = d.Stop, d.Waiting, d.Confirmed
	p.mu.Unlock()
	if begun {
		p.note(Event{Collection: ns, Action: Stopped, Reason: d.Stop})
	}
}

// now reads the clocks for a collection and says why they can't be trusted, or "".
func (p *pass) now(ctx context.Context, col *catalog.Collection) (int64, string) {
	wall, monotonic := p.opts.Clock()
	reading := retention.Reading{Wall: wall.UnixMilli(), Monotonic: monotonic}
	if p.opts.BackendTime != nil {
		for _, name := range backends(col) {
			at, err := p.opts.BackendTime(ctx, name)
			if err != nil {
				return 0, fmt.Sprintf("the time of backend %s is not known: %v", name, err)
			}
			if ms := at.UnixMilli(); reading.Backend == 0 || ms < reading.Backend {
				reading.Backend = ms
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stateOf(col.Namespace())
	if s.since == nil {
		s.since = &reading
	}
	return retention.Now(*s.since, reading)
}

// backends returns the backends that a collection's partitions lie on.
func backends(col *catalog.Collection) []string {
	var list []string
	seen := map[string]bool{}
	for _, p := range col.All {
		if !seen[p.Backend] {
			seen[p.Backend] = true
			list = append(list, p.Backend)
		}
	}
	return list
}

// note logs an event and keeps it.
func (p *pass) note(e Event) {
	e.At, _ = p.opts.Clock()
	if errors.Is(e.Err, context.Canceled) {
		return // the gateway is stopping
	}
	level := slog.LevelInfo
	if e.Err != nil || e.Action == Stopped || e.Action == Failed {
		level = slog.LevelWarn
	}
	what := []any{"collection", e.Collection}
	if e.Partition != "" {
		what = append(what, "partition", e.Partition)
	}
	what = append(what, "reason", e.Reason)
	if e.Err != nil {
		what = append(what, "error", e.Err)
	}
	p.opts.Log.Log(context.Background(), level, "partition "+string(e.Action), what...)
	p.events = append(p.events, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.history) == keptEvents {
		p.mu.history = append(p.mu.history[:0], p.mu.history[1:]...)
	}
	p.mu.history = append(p.mu.history, e)
}

// instant writes an instant for a reason.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
