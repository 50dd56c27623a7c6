package exec

import (
	"context"

	"golang.org/x/sync/errgroup"

	"oxbow/internal/bson"
	"oxbow/internal/plan"
)

// each sends a command to all targets, Fanout at a time, and hands each reply with ok: 1 to take, concurrently for different i.
func (e *Executor) each(ctx context.Context, targets []plan.Target, c plan.Command, take func(i int, reply bson.Document) error) error {
	switch len(targets) {
	case 0:
		return nil
	case 1:
		reply, err := e.send(ctx, targets[0], c)
		if err != nil {
			return err
		}
		return take(0, reply)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(Fanout)
	for i, t := range targets {
		g.Go(func() error {
			reply, err := e.send(ctx, t, c)
			if err != nil {
				return err
			}
			return take(i, reply)
		})
	}
	return g.Wait()
}

// Gather sends a command to all targets and returns their replies, each with ok: 1, in the order of the targets.
func (e *Executor) Gather(ctx context.Context, targets []plan.Target, c plan.Command) ([]bson.Document, error) {
	replies := make([]bson.Document, len(targets))
	if len(targets) == 0 {
		return replies, nil
	}
	return replies, e.each(ctx, targets, c, func(i int, reply bson.Document) error {
		replies[i] = reply
		return nil
	})
}
