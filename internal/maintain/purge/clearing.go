package purge

import (
	"context"
	"fmt"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// clearing is the strategy Nightly without a pace: one delete of all that goes, a target after the other. It shows what that does.
type clearing struct{ options Options }

// clearingState is a checkpoint of it.
type clearingState struct {
	Now  int64    `bson:"now"`
	Done []string `bson:"done"` // names of targets
}

// Step implements maintain.Job.
func (c *clearing) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	state := clearingState{Now: c.options.Clock().UnixMilli()}
	if checkpoint != nil {
		if err := driver.Unmarshal(checkpoint, &state); err != nil {
			return maintain.Outcome{}, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	targets, err := c.options.Targets(ctx)
	if err != nil {
		return maintain.Outcome{}, fmt.Errorf("list what documents go from: %w", err)
	}
	left := pending(targets, state.Done)
	if len(left) == 0 {
		return maintain.Outcome{Done: true}, nil
	}
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return maintain.Outcome{}, err
	}
	n, bytes, err := c.clear(ctx, c.options.on(left[0]), c.options.Predicate.at(milliTime(state.Now)))
	if err != nil {
		return maintain.Outcome{}, err
	}
	state.Done = append(state.Done, left[0].name())
	out := maintain.Outcome{Documents: n, Bytes: bytes, Remaining: -1, Done: len(left) == 1}
	out.Checkpoint, err = driver.Marshal(&state)
	return out, err
}

// clear sends one delete of everything.
func (c *clearing) clear(ctx context.Context, on *collection, what cut) (n, bytes int64, err error) {
	a, err := on.reached(ctx, what)
	if err != nil {
		return 0, 0, err
	}
	average := on.average(ctx)
	n, err = on.delete(ctx, on.statement(what.filter, a.hint()))
	return n, n * average, err
}

// pending are the targets whose names are not among some.
func pending(targets []Target, done []string) []Target {
	known := make(map[string]bool, len(done))
	for _, name := range done {
		known[name] = true
	}
	var left []Target
	for _, t := range targets {
		if !known[t.name()] {
			left = append(left, t)
		}
	}
	return left
}
