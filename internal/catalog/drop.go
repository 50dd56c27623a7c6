package catalog

import (
	"context"
	"errors"
	"fmt"

	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Drop drops a collection at once: every partition, its indexes and options. It reports whether there was one.
func (c *Catalog) Drop(ctx context.Context, ns string) (bool, error) {
	g, err := c.gate(ns)
	if err != nil {
		return false, err
	}
	release, err := acquireAll(ctx, g.physical, g.changes)
	if err != nil {
		return false, err
	}
	defer release()
	col := c.Snapshot().Collection(ns)
	if !col.Created {
		return false, nil
	}
	// A record that is not created and has partitions is a drop cut short: Sweep finishes it.
	forget := func(r *record) {
		r.created, r.options, r.indexes, r.indexing, r.uuid = false, nil, nil, false, [16]byte{}
	}
	return true, c.dropPartitions(ctx, ns, col.All, forget)
}

// DropDatabase drops the collections with a layout of a database. Plain collections are the caller's business.
func (c *Catalog) DropDatabase(ctx context.Context, database string) error {
	var errs []error
	for _, col := range c.Snapshot().Collections(database) {
		if col.Database != database { // Collections takes "" for all
			continue
		}
		_, err := c.Drop(ctx, col.Namespace())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// DropPartition drops a partition for good, whatever its state.
func (c *Catalog) DropPartition(ctx context.Context, ns, name string) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	release, err := acquireAll(ctx, g.physical, g.changes)
	if err != nil {
		return err
	}
	defer release()
	p, err := c.partition(ns, name)
	if err != nil {
		return err
	}
	return c.dropPartitions(ctx, ns, []route.Partition{p}, func(*record) {})
}

// partition returns a collection's partition by its physical name.
func (c *Catalog) partition(ns, name string) (route.Partition, error) {
	p := c.Snapshot().Collection(ns).Partition(name)
	if p == nil {
		return route.Partition{}, mongoerr.New(mongoerr.NamespaceNotFound, "collection %s has no partition %s", ns, name)
	}
	return *p, nil
}

// dropPartitions takes partitions out of routing, drops them and forgets them. change is applied to the collection's record first. The caller
// holds the collection's physical and changes.
func (c *Catalog) dropPartitions(ctx context.Context, ns string, victims []route.Partition, change func(*record)) error {
	col := c.Snapshot().Collection(ns)
	r := *col.record
	change(&r)
	marked := make([]route.Partition, len(victims))
	for i, p := range victims {
		// A name that was never used physically counts as used, too: simpler, and as safe.
		r.used = max(r.used, p.End)
		p.State, p.Since = route.Dropping, c.nowMillis()
		marked[i] = p
	}
	if err := c.store.putRecord(ctx, &r); err != nil {
		return err
	}
	if err := c.store.putPartitions(ctx, ns, marked); err != nil {
		return err
	}
	c.publish(ns, &r, replaced(col.All, marked))
	return c.dropMarked(ctx, ns, marked)
}

// dropMarked drops partitions that are stored as Dropping and forgets those that are gone.
func (c *Catalog) dropMarked(ctx context.Context, ns string, marked []route.Partition) error {
	col := c.Snapshot().Collection(ns)
	errs := each(marked, func(p route.Partition) error { return c.dropPhysical(ctx, col, p) })
	var gone []route.Partition
	for i, err := range errs {
		if err == nil {
			gone = append(gone, marked[i])
		}
	}
	if err := c.store.deletePartitions(ctx, gone); err != nil {
		return errors.Join(append(errs, err)...)
	}
	c.publish(ns, col.record, without(col.All, gone))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("drop partitions of %s: %w", ns, err)
	}
	return nil
}

// dropPhysical drops a partition's collection, and its database if that was made for partitions and is empty now.
func (c *Catalog) dropPhysical(ctx context.Context, col *Collection, p route.Partition) error {
	d, err := c.deployment(p)
	if err != nil {
		return err
	}
	if p.Database == col.Database {
		return d.drop(ctx, p.Database, p.Collection)
	}
	if err := c.databases.acquire(ctx); err != nil {
		return err
	}
	defer c.databases.release()
	if err := d.drop(ctx, p.Database, p.Collection); err != nil {
		return err
	}
	if c.Snapshot().Uses(p.Backend, p.Database) {
		return nil
	}
	return d.dropEmptyDatabase(ctx, p.Database)
}

// Sweep finishes what a crash or a backend's error cut short: recorded partitions are made, dropped ones are dropped, and so are those
// of a collection whose drop was recorded; indexes are made or dropped where partitions don't follow the collection's list.
func (c *Catalog) Sweep(ctx context.Context) error {
	err := c.sweepPartitions(ctx)
	for _, col := range c.Snapshot().Collections("") {
		if col.record.indexing {
			err = errors.Join(err, c.finishIndexes(ctx, col.Namespace()))
		}
	}
	return err
}

func (c *Catalog) sweepPartitions(ctx context.Context) error {
	var errs []error
	for _, col := range c.Snapshot().Collections("") {
		if col.unfinished() {
			errs = append(errs, c.sweep(ctx, col.Namespace()))
		}
	}
	return errors.Join(errs...)
}

// unfinished reports whether sweep has something to do.
func (col *Collection) unfinished() bool {
	for _, p := range col.All {
		if !col.Created || p.State == route.Creating || p.State == route.Dropping {
			return true
		}
	}
	return false
}

func (c *Catalog) sweep(ctx context.Context, ns string) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	release, err := acquireAll(ctx, g.physical, g.changes)
	if err != nil {
		return err
	}
	defer release()
	col := c.Snapshot().Collection(ns)
	if !col.Created {
		c.log.Info("finishing a drop that was cut short", "collection", ns)
		return c.dropPartitions(ctx, ns, col.All, func(*record) {})
	}
	var creating, dropping []route.Partition
	for _, p := range col.All {
		switch p.State {
		case route.Creating:
			creating = append(creating, p)
		case route.Dropping:
			dropping = append(dropping, p)
		}
	}
	var errs []error
	if len(dropping) > 0 {
		c.log.Info("dropping partitions whose drop was cut short", "collection", ns, "partitions", len(dropping))
		errs = append(errs, c.dropMarked(ctx, ns, dropping))
	}
	// A range's partitions may be of several attempts: what is foreign is renamed range by range.
	for len(creating) > 0 {
		n := 1
		for n < len(creating) && creating[n].Start == creating[0].Start {
			n++
		}
		c.log.Info("making partitions whose making was cut short", "collection", ns, "partitions", n)
		errs = append(errs, c.finish(ctx, ns, creating[:n]))
		creating = creating[n:]
	}
	return errors.Join(errs...)
}
