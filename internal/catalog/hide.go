package catalog

import (
	"context"
	"fmt"

	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Hide takes an Active partition out of routing. name is route.Partition.Name(). IllegalOperation in another state, and ErrDecided where another
// gateway has hidden it.
func (c *Catalog) Hide(ctx context.Context, ns, name string) error {
	return c.turn(ctx, ns, name, route.Active, func(p *route.Partition) {
		p.State, p.Restored = route.Hidden, false
	})
}

// Undo brings a Hidden partition back, as Restored: retention does not hide it again. IllegalOperation in another state. Where the catalog is shared it
// is Returning until every gateway reads it, and only then written to.
func (c *Catalog) Undo(ctx context.Context, ns, name string) error {
	to := route.Active
	if c.Shared() {
		to = route.Returning
	}
	err := c.turn(ctx, ns, name, route.Hidden, func(p *route.Partition) {
		p.State, p.Restored = to, true
	})
	if err != nil || !c.Shared() {
		return err
	}
	release, err := c.beginChange(ctx, ns)
	if err != nil {
		return err
	}
	defer release()
	return c.deciding(ctx, func() error {
		p, err := c.partition(ns, name)
		if err != nil || p.State != route.Returning || !c.mine(p) {
			return err
		}
		return c.open(ctx, ns, []route.Partition{p})
	})
}

// turn changes a partition that is in a state.
func (c *Catalog) turn(ctx context.Context, ns, name string, from route.State, change func(*route.Partition)) error {
	release, err := c.beginChange(ctx, ns)
	if err != nil {
		return err
	}
	defer release()
	err = c.deciding(ctx, func() error {
		before, err := c.partition(ns, name)
		if err != nil {
			return err
		}
		p := before
		change(&p)
		if before.State != from {
			err := mongoerr.New(mongoerr.IllegalOperation, "partition %s is %s, not %s", name, before.State, from)
			if before.By != c.members.self() {
				return fmt.Errorf("%w: %w", ErrDecided, err)
			}
			return err
		}
		p.Since = c.nowMillis()
		after, err := c.storePartitions(ctx, ns, []route.Partition{before}, []route.Partition{p})
		if err != nil {
			return err
		}
		c.publish(ns, nil, after, nil)
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.members.announce(ctx)
	return err
}
