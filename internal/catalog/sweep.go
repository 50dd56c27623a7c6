package catalog

import (
	"context"
	"errors"
	"slices"

	"oxbow/internal/route"
)

// Sweep finishes what a crash or a backend's error cut short, here or on a gateway that is gone: recorded partitions are made, dropped ones are dropped, and
// so are those of a collection whose drop was recorded; indexes are made or dropped where partitions don't follow the collection's list.
func (c *Catalog) Sweep(ctx context.Context) error {
	err := c.sweepPartitions(ctx)
	for _, col := range c.Snapshot().Collections("") {
		if col.record.indexing && !c.members.live(col.record.lister) {
			err = errors.Join(err, c.finishIndexes(ctx, col.Namespace()))
		}
	}
	return err
}

func (c *Catalog) sweepPartitions(ctx context.Context) error {
	var errs []error
	for _, col := range c.Snapshot().Collections("") {
		if c.unfinished(col) {
			errs = append(errs, c.sweep(ctx, col.Namespace()))
		}
	}
	return errors.Join(errs...)
}

// unfinished reports whether sweep has something to do.
func (c *Catalog) unfinished(col *Collection) bool {
	return slices.ContainsFunc(col.All, func(p route.Partition) bool {
		unfinished := !col.Created || p.State == route.Creating || p.State == route.Returning || p.State == route.Dropping
		return unfinished && c.mine(p)
	})
}

func (c *Catalog) sweep(ctx context.Context, ns string) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	dropping, err := c.mark(ctx, g, ns, func() ([]route.Partition, error) {
		col := c.Snapshot().Collection(ns)
		if !col.Created && !c.members.live(col.record.by) {
			if err := c.markLeft(ctx, ns); err != nil {
				return nil, err
			}
		}
		return slices.DeleteFunc(c.Snapshot().Collection(ns).dropping(), func(p route.Partition) bool { return !c.mine(p) }), nil
	})
	errs := []error{err}
	if len(dropping) > 0 {
		c.log.Info("dropping partitions whose drop was cut short", "collection", ns, "partitions", len(dropping))
		errs = append(errs, c.dropWhenSeen(ctx, g, ns, dropping))
	}
	release, err := c.enter(ctx, ns, g.changes)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	defer release()
	return errors.Join(append(errs, c.deciding(ctx, func() error { return c.finishMaking(ctx, ns) }))...)
}

// finishMaking makes partitions whose making was cut short. A range's partitions may be of several attempts: what is foreign is renamed range by range.
func (c *Catalog) finishMaking(ctx context.Context, ns string) error {
	col := c.Snapshot().Collection(ns)
	making := slices.DeleteFunc(slices.Clone(col.All), func(p route.Partition) bool {
		return !col.Created || p.State != route.Creating && p.State != route.Returning || !c.mine(p)
	})
	var errs []error
	for len(making) > 0 {
		n := 1
		for n < len(making) && making[n].Start == making[0].Start {
			n++
		}
		c.log.Info("making partitions whose making was cut short", "collection", ns, "partitions", n)
		errs = append(errs, c.finish(ctx, ns, making[:n]))
		making = making[n:]
	}
	return errors.Join(errs...)
}
