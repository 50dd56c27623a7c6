package purge

import (
	"context"
	"fmt"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// slicing is the strategy Slices.
type slicing struct {
	options  Options
	targets  []Target // nil: not asked for yet
	emptiers map[int]*emptier
	size     *sizing
	lost     bool // the index that the checkpoint names
}

// slicesState is a checkpoint of Slices.
type slicesState struct {
	Now    int64           `bson:"now"` // at the pass's beginning, in milliseconds; 0: each step has its own
	Target string          `bson:"target"`
	Index  string          `bson:"index"`
	Held   bson.Document   `bson:"held,omitempty"`
	At     driver.RawValue `bson:"at,omitempty"`   // nothing below it is left
	Open   bool            `bson:"open,omitempty"` // nothing at it either
	Begun  bool            `bson:"begun"`
	Total  int64           `bson:"total"` // documents that were to go, -1: not known
	Tally  tally           `bson:"tally"`
}

// Step implements maintain.Job: it takes the next slice that holds something away, or as much of it as a second allows.
func (s *slicing) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	var state slicesState
	if checkpoint != nil {
		if err := driver.Unmarshal(checkpoint, &state); err != nil {
			return maintain.Outcome{}, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	if err := state.Tally.look(0, 0, s.options.MaxRatio); err != nil {
		return maintain.Outcome{}, err
	}
	if s.targets == nil {
		var err error
		if s.targets, err = s.options.Targets(ctx); err != nil {
			return maintain.Outcome{}, fmt.Errorf("list what documents go from: %w", err)
		}
		s.emptiers, s.size = make(map[int]*emptier), newSizing(s.options.Batch)
	}
	now := s.options.Clock()
	if !s.options.Follow {
		if state.Now == 0 {
			state.Now = now.UnixMilli()
		}
		now = time.UnixMilli(state.Now)
	}
	did, done, err := s.step(ctx, &state, s.options.Predicate.at(now), pace)
	if hintGone(err) {
		s.lost, s.emptiers = true, make(map[int]*emptier)
	}
	if err != nil {
		return maintain.Outcome{}, err
	}
	state.Tally.add(did)
	out := did.outcome()
	out.Done = done && !s.options.Follow
	out.Remaining = remaining(out.Done, state.Total, state.Tally.Gone, len(s.targets))
	if out.Checkpoint, err = driver.Marshal(&state); err != nil {
		return out, err
	}
	if done && s.options.Follow {
		wait(ctx, min(s.options.Slice, stepTime))
	}
	return out, nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// step works on the target that is at hand; done says that the last one is at its end.
func (s *slicing) step(ctx context.Context, state *slicesState, what cut, pace maintain.Pace) (did tally, done bool, err error) {
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return did, false, err
	}
	at := s.find(state)
	if at == len(s.targets) || what.time.empty() {
		return did, true, nil
	}
	e, err := s.emptier(ctx, state, what, at)
	if err != nil {
		return did, false, err
	}
	slice, ok, err := s.next(ctx, state, what, e)
	if err != nil {
		return did, false, err
	}
	if !ok {
		// The end of a target; one that is followed stays at its end.
		if s.options.Follow && at == len(s.targets)-1 {
			return did, true, nil
		}
		*state = slicesState{Now: state.Now, Tally: state.Tally}
		if at++; at < len(s.targets) {
			state.Target = s.targets[at].name()
		}
		return did, at == len(s.targets), nil
	}
	c := newCell(at, slice)
	until := s.options.Clock().Add(stepTime)
	for !c.done && ctx.Err() == nil && s.options.Clock().Before(until) {
		t, err := e.batch(ctx, c, pace)
		did.add(t)
		if err == nil {
			err = state.Tally.look(t.Examined, t.Taken, s.options.MaxRatio)
		}
		if err != nil && did.Gone == 0 {
			return did, false, err
		}
		if err != nil {
			break // it comes again in the next step
		}
	}
	state.At, state.Open = c.Low, c.Open
	if c.done {
		state.At, state.Open = raw(slice.hi), false
	}
	return did, false, nil
}

// find is the place of the target that a checkpoint is at; of one that is gone, the first.
func (s *slicing) find(state *slicesState) int {
	if state.Target == "" && len(s.targets) > 0 {
		state.Target = s.targets[0].name()
	}
	for i := range s.targets {
		if s.targets[i].name() == state.Target {
			return i
		}
	}
	*state = slicesState{Now: state.Now, Tally: state.Tally}
	return min(len(s.targets), 0)
}

// emptier is that of a target, whose index is looked for at its beginning.
func (s *slicing) emptier(ctx context.Context, state *slicesState, what cut, at int) (*emptier, error) {
	c := s.options.on(s.targets[at])
	if !state.Begun {
		a, err := c.keyed(ctx, what, what.time.path)
		if err != nil {
			return nil, err
		}
		state.Target, state.Begun = s.targets[at].name(), true
		state.Index, state.Held, state.Total = a.index, a.held, -1
		if !s.options.Follow {
			state.Total = s.options.total(ctx, c, what, a)
		}
		state.At = raw(what.time.lo)
	} else if s.lost {
		a, err := c.keyed(ctx, what, what.time.path)
		if err != nil {
			return nil, err
		}
		state.Index, state.Held = a.index, a.held
	}
	s.lost = false
	e := s.emptiers[at]
	if e == nil {
		a := access{state.Index, state.Held}
		e = s.options.emptier(ctx, c, nil, what.time.path, a, s.size)
		e.whole = s.options.Unpaced
		s.emptiers[at] = e
	}
	e.filter = what.filter
	return e, nil
}

// next is the slice that the first document from the checkpoint on lies in; false where there is none.
func (s *slicing) next(ctx context.Context, state *slicesState, what cut, e *emptier) (span, bool, error) {
	rest := what.time
	rest.lo, rest.open = value(state.At), state.Open
	if rest.empty() {
		return span{}, false, nil
	}
	first, err := e.collection.find(ctx, find{
		filter: e.access.keys(rest), sort: ascending(rest.path), projection: fieldsOnly(rest.path), hint: e.access.hint(), limit: 1,
	})
	if err != nil || len(first) == 0 {
		return span{}, false, err
	}
	key, err := e.keyOf(first[0])
	if err != nil {
		return span{}, false, err
	}
	instant, ok := instantOf(s.options.Predicate.Unit, key)
	if !ok {
		return span{}, false, fmt.Errorf("a document that was found by %s has no time", rest.path)
	}
	end := unitValue(s.options.Predicate.Unit, instant.Truncate(s.options.Slice).Add(s.options.Slice))
	slice := rest
	slice.lo, slice.open = key, false
	switch {
	case bson.Compare(end, rest.hi) <= 0:
		slice.hi = end
	case s.options.Follow:
		return span{}, false, nil // its time is not over
	}
	return slice, true, nil
}
