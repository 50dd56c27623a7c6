package exec

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"golang.org/x/sync/errgroup"
)

// Count runs a count on all its targets and returns the result.
func (e *Executor) Count(ctx context.Context, p *plan.Count) (int64, error) {
	counts := make([]int64, len(p.Routed.Targets))
	err := e.each(ctx, p.Routed.Targets, p.Command, func(i int, reply bson.Document) error {
		n, ok := bson.Get(reply, "n")
		if !ok {
			return mongoerr.New(mongoerr.InternalError, "backend %s gave no count", p.Routed.Targets[i].Backend)
		}
		counts[i], _ = n.AsInt64OK()
		return nil
	})
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return p.Of(sum), nil
}

// each sends a command to all targets, Fanout at a time, and hands each reply with ok: 1 to take, concurrently for different i.
func (e *Executor) each(ctx context.Context, targets []plan.Target, c plan.Command, take func(i int, reply bson.Document) error) error {
	switch len(targets) {
	case 0:
		return nil
	case 1:
		reply, err := e.send(ctx, targets[0], c)
		if err != nil {
			return onTarget(targets[0], err)
		}
		return take(0, reply)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(Fanout)
	for i, t := range targets {
		g.Go(func() error {
			reply, err := e.send(ctx, t, c)
			if err != nil {
				return onTarget(t, err)
			}
			return take(i, reply)
		})
	}
	return g.Wait()
}

// Distinct runs a distinct on all its targets and returns the union of their values as an array, in the order in which they were
// first seen. Beyond 16 MiB it fails, as MongoDB's does.
func (e *Executor) Distinct(ctx context.Context, p *plan.Distinct) (bson.Array, error) {
	perTarget := make([]bson.Value, len(p.Routed.Targets))
	err := e.each(ctx, p.Routed.Targets, p.Command, func(i int, reply bson.Document) error {
		perTarget[i], _ = bson.Get(reply, "values")
		return nil
	})
	if err != nil {
		return nil, err
	}
	return union(perTarget)
}

// union returns the distinct values of arrays as one array.
func union(arrays []bson.Value) (bson.Array, error) {
	seen := make(map[string]struct{})
	var values values
	var key []byte
	for _, a := range arrays {
		it := bson.Elements(a.Data)
		for it.Next() {
			key = bson.AppendKey(key[:0], it.Value(), false)
			if _, ok := seen[string(key)]; ok {
				continue
			}
			seen[string(key)] = struct{}{}
			values.add(it.Value())
			if len(values.bytes) > bson.MaxDocumentSize {
				return nil, mongoerr.New(mongoerr.DistinctTooBig, "distinct too big, 16mb cap")
			}
		}
	}
	return values.array(), nil
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
