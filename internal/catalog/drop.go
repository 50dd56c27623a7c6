package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Drop drops a collection at once: every partition, its indexes and options. It reports whether there was one. Where the catalog is shared, the collections
// of its partitions go when no gateway can have an insert under way to them; until then nobody finds them either.
func (c *Catalog) Drop(ctx context.Context, ns string) (found bool, err error) {
	g, err := c.gate(ns)
	if err != nil {
		return false, err
	}
	marked, err := c.mark(ctx, g, ns, func() ([]route.Partition, error) {
		col := c.Snapshot().Collection(ns)
		if col.Created && !found {
			// A record that is not created and has partitions is a drop cut short: Sweep finishes it.
			forget := func(r *record) {
				r.created, r.options, r.indexes, r.indexing, r.uuid = false, nil, nil, false, [16]byte{}
			}
			if err := c.retire(ctx, ns, col.All, forget); err != nil {
				return nil, err
			}
			found = true
		}
		if !found {
			return nil, nil
		}
		if !c.Snapshot().Collection(ns).Created { // nobody has made it again
			if err := c.markLeft(ctx, ns); err != nil {
				return nil, err
			}
		}
		return c.Snapshot().Collection(ns).dropping(), nil
	})
	if err != nil || !found {
		return found, err
	}
	told, err := c.members.announce(ctx)
	if err == nil {
		err = c.members.awaitSeen(ctx, told)
	}
	if err != nil {
		return true, err
	}
	return true, c.dropWhenSeen(ctx, g, ns, marked)
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

// DropPartition drops a partition for good, whatever its state: see Drop. ErrDecided where another gateway is about to.
func (c *Catalog) DropPartition(ctx context.Context, ns, name string) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	marked, err := c.mark(ctx, g, ns, func() ([]route.Partition, error) {
		p, err := c.partition(ns, name)
		if err != nil {
			return nil, err
		}
		if p.State == route.Dropping && !c.mine(p) {
			return nil, fmt.Errorf("%w: %w", ErrDecided, mongoerr.New(mongoerr.IllegalOperation, "partition %s is being dropped", name))
		}
		if p.State == route.Dropping {
			return []route.Partition{p}, nil
		}
		if err := c.retire(ctx, ns, []route.Partition{p}, func(*record) {}); err != nil {
			return nil, err
		}
		return c.markDropping(ctx, ns, []route.Partition{p})
	})
	if err != nil {
		return err
	}
	return c.dropWhenSeen(ctx, g, ns, marked)
}

// partition returns a collection's partition by its physical name.
func (c *Catalog) partition(ns, name string) (route.Partition, error) {
	p := c.Snapshot().Collection(ns).Partition(name)
	if p == nil {
		err := error(mongoerr.New(mongoerr.NamespaceNotFound, "collection %s has no partition %s", ns, name))
		if c.Shared() {
			err = fmt.Errorf("%w: %w", ErrDecided, err)
		}
		return route.Partition{}, err
	}
	return *p, nil
}

// mark runs a change that marks partitions as Dropping, while nothing else of the collection changes.
func (c *Catalog) mark(ctx context.Context, g *gate, ns string, change func() ([]route.Partition, error)) (marked []route.Partition, err error) {
	release, err := c.enter(ctx, ns, g.changes)
	if err != nil {
		return nil, err
	}
	defer release()
	err = c.deciding(ctx, func() error {
		marked, err = change()
		return err
	})
	return marked, err
}

// retire stores in a collection's record that the names of partitions are used, and another change. What is being made stays in it until it is marked
// itself. The caller holds the collection's changes.
func (c *Catalog) retire(ctx context.Context, ns string, victims []route.Partition, change func(*record)) error {
	col := c.Snapshot().Collection(ns)
	r := *col.record
	change(&r)
	for _, p := range victims {
		// A name that was never used physically counts as used, too: simpler, and as safe.
		r.used = max(r.used, p.End)
	}
	r.making = creating(col.All)
	stored, err := c.store.swapRecord(ctx, r)
	if err != nil {
		return err
	}
	c.publish(ns, stored, nil, nil)
	return nil
}

// markLeft marks what is left of a collection that was dropped. The caller holds the collection's changes.
func (c *Catalog) markLeft(ctx context.Context, ns string) error {
	left := slices.DeleteFunc(slices.Clone(c.Snapshot().Collection(ns).All), func(p route.Partition) bool { return p.State == route.Dropping })
	_, err := c.markDropping(ctx, ns, left)
	return err
}

// markDropping takes partitions out of routing for good. One that another gateway has only put into the record so far is stored in its place, so that
// it can't store it as being made any more.
func (c *Catalog) markDropping(ctx context.Context, ns string, victims []route.Partition) ([]route.Partition, error) {
	marked := slices.Clone(victims)
	for i := range marked {
		marked[i].State, marked[i].Since = route.Dropping, c.nowMillis()
	}
	marked, err := c.storePartitions(ctx, ns, victims, marked)
	if err != nil {
		return nil, err
	}
	c.publish(ns, nil, marked, nil)
	return marked, nil
}

// dropping returns the partitions that are marked.
func (col *Collection) dropping() []route.Partition {
	return slices.DeleteFunc(slices.Clone(col.All), func(p route.Partition) bool { return p.State != route.Dropping })
}

// dropWhenSeen drops marked partitions at once if no gateway can have an insert under way to one. Otherwise they wait for Keep, or Sweep.
func (c *Catalog) dropWhenSeen(ctx context.Context, g *gate, ns string, marked []route.Partition) error {
	if err := c.awaitDrain(ctx, marked); err != nil {
		return err
	}
	ready := c.drained(marked)
	if len(ready) == 0 {
		return nil
	}
	release, err := c.enter(ctx, ns, g.physical)
	if err != nil {
		return err
	}
	defer release()
	return c.dropMarked(ctx, ns, ready)
}

// awaitDrain notes for partitions which version every gateway must have seen before they are dropped.
func (c *Catalog) awaitDrain(ctx context.Context, marked []route.Partition) error {
	told, err := c.members.announce(ctx)
	if err != nil || c.members == nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range marked {
		if _, known := c.mu.dropping[partitionID(p)]; !known {
			c.mu.dropping[partitionID(p)] = told
		}
	}
	return nil
}

// drained returns those of marked partitions to which no gateway can have an insert under way.
func (c *Catalog) drained(marked []route.Partition) []route.Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(marked), func(p route.Partition) bool {
		told, known := c.mu.dropping[partitionID(p)]
		return c.members != nil && (!known || !c.members.drainedBy(told))
	})
}

// finishDrops drops the partitions that had to wait for other gateways, and those of gateways that are gone.
func (c *Catalog) finishDrops(ctx context.Context) error {
	var errs []error
	c.forgetWaiting()
	for _, col := range c.Snapshot().Collections("") {
		waiting := slices.DeleteFunc(col.dropping(), func(p route.Partition) bool { return !c.mine(p) })
		if len(waiting) == 0 {
			continue
		}
		if c.unannounced(waiting) {
			errs = append(errs, c.awaitDrain(ctx, waiting))
		}
		ready := c.drained(waiting)
		g, err := c.gate(col.Namespace())
		if err != nil || len(ready) == 0 || !g.physical.tryAcquire() {
			continue // somebody is at it
		}
		if c.Snapshot().Collection(col.Namespace()) != nil {
			errs = append(errs, c.dropMarked(ctx, col.Namespace(), ready))
		}
		g.physical.release()
	}
	return errors.Join(errs...)
}

// forgetWaiting forgets what was noted of partitions that other gateways have dropped.
func (c *Catalog) forgetWaiting() {
	s := c.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.dropping, func(id string, _ int64) bool {
		for _, col := range s.collections {
			for _, p := range col.dropping() {
				if partitionID(p) == id {
					return false
				}
			}
		}
		return true
	})
}

// unannounced reports whether it is not known of a marked partition which version has it.
func (c *Catalog) unannounced(marked []route.Partition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(marked, func(p route.Partition) bool {
		_, known := c.mu.dropping[partitionID(p)]
		return !known
	})
}

// dropMarked drops partitions that are stored as Dropping and forgets those that are gone. The caller holds the collection's physical.
func (c *Catalog) dropMarked(ctx context.Context, ns string, marked []route.Partition) error {
	col := c.Snapshot().Collection(ns)
	marked = slices.DeleteFunc(slices.Clone(marked), func(p route.Partition) bool { // dropped while this waited
		now := col.Partition(p.Name())
		return now == nil || now.Change != p.Change
	})
	errs := each(marked, func(p route.Partition) error { return c.dropPhysical(ctx, col, p) })
	var dropped []route.Partition
	for i, err := range errs {
		if err == nil {
			dropped = append(dropped, marked[i])
		}
	}
	if err := c.forgetMaking(ctx, ns, dropped); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if err := c.forget(ctx, ns, dropped); err != nil {
		return errors.Join(append(errs, err)...)
	}
	c.publish(ns, nil, nil, dropped)
	c.mu.Lock()
	for _, p := range dropped {
		delete(c.mu.dropping, partitionID(p))
	}
	c.mu.Unlock()
	_, err := c.members.announce(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("drop partitions of %s: %w", ns, err)
	}
	return nil
}

// forgetMaking takes partitions that are dropped off those that the record says are being made: without documents of their own they would
// be made again.
func (c *Catalog) forgetMaking(ctx context.Context, ns string, dropped []route.Partition) error {
	return c.deciding(ctx, func() error {
		r := *c.Snapshot().Collection(ns).record
		left := without(r.making, dropped)
		if len(left) == len(r.making) {
			return nil
		}
		r.making = left
		stored, err := c.store.swapRecord(ctx, r)
		if err == nil {
			c.publish(ns, stored, nil, nil)
		}
		return err
	})
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
	if c.Shared() || c.Snapshot().Uses(p.Backend, p.Database) {
		return nil // another gateway may be about to make a partition in it
	}
	return d.dropEmptyDatabase(ctx, p.Database)
}
