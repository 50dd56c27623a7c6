package catalog

import (
	"context"

	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Hide takes an Active partition out of routing. name is route.Partition.Name(). IllegalOperation in another state.
func (c *Catalog) Hide(ctx context.Context, ns, name string) error {
	return c.turn(ctx, ns, name, route.Active, func(p *route.Partition) {
		p.State, p.Restored = route.Hidden, false
	})
}

// Undo brings a Hidden partition back, as Restored: retention does not hide it again. IllegalOperation in another state.
func (c *Catalog) Undo(ctx context.Context, ns, name string) error {
	return c.turn(ctx, ns, name, route.Hidden, func(p *route.Partition) {
		p.State, p.Restored = route.Active, true
	})
}

// turn changes a partition that is in a state.
func (c *Catalog) turn(ctx context.Context, ns, name string, from route.State, change func(*route.Partition)) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	if err := g.changes.acquire(ctx); err != nil {
		return err
	}
	defer g.changes.release()
	p, err := c.partition(ns, name)
	if err != nil {
		return err
	}
	if p.State != from {
		return mongoerr.New(mongoerr.IllegalOperation, "partition %s is %s, not %s", name, p.State, from)
	}
	change(&p)
	p.Since = c.nowMillis()
	if err := c.store.putPartitions(ctx, ns, []route.Partition{p}); err != nil {
		return err
	}
	col := c.Snapshot().Collection(ns)
	c.publish(ns, col.record, replaced(col.All, []route.Partition{p}))
	return nil
}
