package throttle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oxbow/internal/mongoerr"
)

// Options configure a Throttle.
type Options struct {
	Probes   []Probe // in the order in which a reason is looked for
	Settings *Live   // nil: the defaults
	Log      *slog.Logger
	traffic  *traffic
}

// Throttle is the verdict on a deployment, from what its probes found last. Safe for concurrent use; Run keeps it up to date.
type Throttle struct {
	settings *Live
	log      *slog.Logger
	probes   []Probe
	traffic  *traffic

	mu struct {
		sync.Mutex
		findings        []Finding
		verdict         Verdict
		frees           Verdict // for work that gives disk space back: a full disk does not stop it
		ramp, freesRamp ramp
		hold            hold
		ticked          time.Time
		changed         chan struct{} // closed when a verdict changes
		totals          map[string]*Total
	}
}

// Total is how long a probe has slowed and stopped, since the start.
type Total struct{ Slow, Stop time.Duration }

// starting is the verdict before any probe has looked.
var starting = Verdict{State: Stop, Probe: Ramp, Reason: "the probes have not looked yet"}

// New returns a Throttle that stops until Run has been called and its probes have looked.
func New(o Options) *Throttle {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Settings == nil {
		o.Settings = NewLive(Settings{})
	}
	if o.traffic == nil {
		o.traffic = &traffic{}
	}
	t := &Throttle{settings: o.Settings, log: o.Log, probes: o.Probes, traffic: o.traffic}
	for _, p := range o.Probes {
		t.mu.findings = append(t.mu.findings, Finding{Probe: p.Name()})
	}
	t.mu.verdict, t.mu.frees, t.mu.changed, t.mu.totals = starting, starting, make(chan struct{}), map[string]*Total{}
	return t
}

// Settings returns the thresholds.
func (t *Throttle) Settings() Settings { return t.settings.Load() }

// SetSettings changes the thresholds, from the next look on.
func (t *Throttle) SetSettings(s Settings) {
	t.settings.Store(s)
	t.log.Info("throttle's thresholds changed", "differ", s.String())
}

// Verdict returns the verdict now.
func (t *Throttle) Verdict() Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.verdict
}

// Findings returns what each probe found last.
func (t *Throttle) Findings() []Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.mu.findings)
}

// Totals returns how long each probe has slowed and stopped.
func (t *Throttle) Totals() map[string]Total {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]Total, len(t.mu.totals))
	for name, total := range t.mu.totals {
		all[name] = *total
	}
	return all
}

// Run has the probes look and makes verdicts of what they find, until ctx ends.
func (t *Throttle) Run(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	for i, p := range t.probes {
		probes.Go(func() { t.watch(ctx, i, p) })
		if r, ok := p.(Runner); ok {
			probes.Go(func() { r.Run(ctx) })
		}
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.tick(now)
		}
	}
}

// watch has one probe look again and again.
func (t *Throttle) watch(ctx context.Context, i int, p Probe) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		found := t.look(ctx, p)
		t.mu.Lock()
		t.mu.findings[i] = found
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look has a probe look once.
func (t *Throttle) look(ctx context.Context, p Probe) Finding {
	f := Finding{Probe: p.Name(), Began: time.Now()}
	if t.settings.Load().Of(f.Probe).Off {
		f.Absent, f.At = off, f.Began
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	f.Verdict, err = p.Look(ctx)
	f.At = time.Now()
	f.Full = mongoerr.Is(err, mongoerr.OutOfDiskSpace)
	var absent Absent
	switch {
	case errors.As(err, &absent):
		f.Absent = string(absent)
	case errors.Is(err, context.DeadlineExceeded):
		f.Verdict = Verdict{State: Stop, Probe: f.Probe, Reason: fmt.Sprintf("%s failed: no answer within %v: %v", f.Probe, patience, err)}
	case err != nil:
		f.Verdict = Verdict{State: Stop, Probe: f.Probe, Reason: f.Probe + " failed: " + err.Error()}
	}
	return f
}

// tick makes the verdicts of what was found until now.
func (t *Throttle) tick(now time.Time) {
	before, verdict := t.renew(now)
	if before.State != verdict.State || before.Probe != verdict.Probe {
		t.log.Info("throttle says "+verdict.State.String(), "probe", verdict.Probe, "reason", verdict.Reason, "was", before.State.String())
	}
}

// renew makes the verdicts, and returns that of before and the new one.
func (t *Throttle) renew(now time.Time) (before, verdict Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	passed := time.Duration(0)
	if !t.mu.ticked.IsZero() {
		passed = now.Sub(t.mu.ticked)
	}
	t.mu.ticked = now
	t.countLocked(now, passed)
	verdict = combine(now, t.mu.findings, false)
	frees := combine(now, t.mu.findings, true)
	if held, ok := t.mu.hold.over(now, verdict, t.mu.findings); ok {
		verdict, frees = held, held
	}
	verdict, frees = t.mu.ramp.limit(verdict, passed), t.mu.freesRamp.limit(frees, passed)
	before = t.mu.verdict
	if before.State != verdict.State || before.Share != verdict.Share || t.mu.frees.State != frees.State || t.mu.frees.Share != frees.Share {
		close(t.mu.changed)
		t.mu.changed = make(chan struct{})
	}
	t.mu.verdict, t.mu.frees = verdict, frees
	return before, verdict
}

// countLocked adds the time since the last tick to the totals of the probes that slow or stop.
func (t *Throttle) countLocked(now time.Time, passed time.Duration) {
	for i := range t.mu.findings {
		f := &t.mu.findings[i]
		v := f.judged(now)
		if v.State == Go {
			continue
		}
		total := t.mu.totals[f.Probe]
		if total == nil {
			total = &Total{}
			t.mu.totals[f.Probe] = total
		}
		if v.State == Stop {
			total.Stop += passed
		} else {
			total.Slow += passed
		}
	}
}

// now returns the verdict for a kind of work, and what is closed when it changes.
func (t *Throttle) now(frees bool) (Verdict, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if frees {
		return t.mu.frees, t.mu.changed
	}
	return t.mu.verdict, t.mu.changed
}
