package throttle

import (
	"context"
	"time"

	"oxbow/internal/deployment"
)

// sample is something that several probes need: it is read once for all that look at about the same time.
type sample[T any] struct {
	turn  chan struct{} // holds one while nobody reads
	at    time.Time     // guarded by turn, as are the others
	value T
	err   error
}

func newSample[T any]() *sample[T] {
	s := &sample[T]{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// get returns the value, read if it is older than age.
func (s *sample[T]) get(ctx context.Context, age time.Duration, read func(context.Context) (T, error)) (T, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if s.at.IsZero() || time.Since(s.at) > age {
		s.value, s.err = read(ctx)
		s.at = time.Now()
	}
	return s.value, s.err
}

// fresh is how old a sample may be: younger than the look before.
const fresh = lookEvery * 8 / 10

// view is a deployment as its probes see it.
type view struct {
	deployment *deployment.Deployment
	settings   *Live
	sets       *sample[[]deployment.Set]
	loads      *sample[[]load]
	machines   machines
}

func newView(d *deployment.Deployment, settings *Live) *view {
	return &view{deployment: d, settings: settings, sets: newSample[[]deployment.Set](), loads: newSample[[]load](), machines: newMachines()}
}

// errNoSets is what probes of replica sets say where there are none.
const errNoSets = Absent("no replica set")

// readSets returns the deployment's replica sets, or Absent.
func (v *view) readSets(ctx context.Context) ([]deployment.Set, error) {
	sets, err := v.sets.get(ctx, fresh, v.deployment.Sets)
	if err == nil && len(sets) == 0 {
		err = errNoSets
	}
	return sets, err
}

// judge is judge with the settings now.
func (v *view) judge(probe, what string, value float64) Verdict {
	return judge(v.settings.Load(), probe, what, value)
}
