package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Ensure makes the partitions of the given places of a collection (all slots of a time range at once) and returns a snapshot that has them.
// Concurrent calls for one range make it once. It creates the collection if need be.
func (c *Catalog) Ensure(ctx context.Context, ns string, places []route.Place) (*Snapshot, error) {
	g, err := c.gate(ns)
	if err != nil {
		return nil, err
	}
	if err := g.changes.acquire(ctx); err != nil {
		return nil, err
	}
	defer g.changes.release()
	for _, p := range places {
		for at := p.Start; ; {
			end, err := c.ensureRange(ctx, ns, at)
			if err != nil {
				return nil, fmt.Errorf("make partitions of %s: %w", ns, err)
			}
			if end >= p.End {
				break
			}
			at = end
		}
	}
	return c.Snapshot(), nil
}

// Create records a collection as created, with the options of the create command; of a collection with a hash layout only, its partitions
// are made. NamespaceExists if it is there with other options.
func (c *Catalog) Create(ctx context.Context, ns string, options bson.Document) (*Snapshot, error) {
	g, err := c.gate(ns)
	if err != nil {
		return nil, err
	}
	if err := g.changes.acquire(ctx); err != nil {
		return nil, err
	}
	defer g.changes.release()
	col := c.Snapshot().Collection(ns)
	if col.Created {
		if !sameOptions(col.Options, options) {
			return nil, mongoerr.New(mongoerr.NamespaceExists, "Collection %s already exists.", ns)
		}
		return c.Snapshot(), nil
	}
	if err := c.markCreated(ctx, col, options); err != nil {
		return nil, err
	}
	if col.Table.Layout.Time == nil {
		if _, err := c.ensureRange(ctx, ns, 0); err != nil {
			return nil, fmt.Errorf("make partitions of %s: %w", ns, err)
		}
	}
	return c.Snapshot(), nil
}

// sameOptions compares the options of two creates; no options are the same as empty ones.
func sameOptions(a, b bson.Document) bool {
	const empty = 5 // bytes of an empty document
	return len(a) <= empty && len(b) <= empty || slices.Equal(a, b)
}

// markCreated stores that a collection exists.
func (c *Catalog) markCreated(ctx context.Context, col *Collection, options bson.Document) error {
	r := *col.record
	r.created, r.uuid = true, newUUID()
	if options != nil {
		r.options = slices.Clone(options)
	}
	r.configure(col.config, col.All)
	if err := c.store.putRecord(ctx, &r); err != nil {
		return err
	}
	c.publish(col.Namespace(), &r, col.All)
	return nil
}

// ensureRange makes what is missing of the time range around an instant and returns the range's end. The caller holds the collection's
// changes.
func (c *Catalog) ensureRange(ctx context.Context, ns string, ms int64) (end int64, err error) {
	col := c.Snapshot().Collection(ns)
	// Cut by partitions of every state, so that a hidden one can come back.
	known := route.Table{Layout: col.Table.Layout, Partitions: col.All}
	at := known.At(-1, ms)
	missing, pending := col.lacking(at.Start)
	if len(missing)+len(pending) == 0 {
		return at.End, nil
	}
	if !col.Created {
		if err := c.markCreated(ctx, col, nil); err != nil {
			return 0, err
		}
	}
	if len(missing) > 0 {
		made, err := c.recordNew(ctx, ns, at.Start, at.End, missing)
		if err != nil {
			return 0, err
		}
		pending = append(pending, made...)
	}
	return at.End, c.finish(ctx, ns, pending)
}

// lacking returns the slots that have no partition to write to in the range from start, and the partitions of the range that are recorded and
// perhaps not made yet.
func (col *Collection) lacking(start int64) (missing []int, pending []route.Partition) {
	slots := []int{-1}
	if h := col.Table.Layout.Hash; h != nil {
		slots = make([]int, h.Count)
		for i := range slots {
			slots[i] = i
		}
	}
	there := map[int]bool{}
	for _, p := range col.All {
		if p.Start != start {
			continue
		}
		switch p.State {
		case route.Creating:
			pending = append(pending, p)
			there[p.Slot] = true
		case route.Active:
			there[p.Slot] = true
		}
	}
	for _, slot := range slots {
		if !there[slot] {
			missing = append(missing, slot)
		}
	}
	return missing, pending
}

// recordNew stores partitions of a range as Creating, under names that were never used, and publishes them.
func (c *Catalog) recordNew(ctx context.Context, ns string, start, end int64, slots []int) ([]route.Partition, error) {
	s := c.Snapshot()
	col := s.Collection(ns)
	r := *col.record
	r.configure(col.config, col.All)
	generation := 1
	if start < r.used {
		generation = int(r.generation) + 1
	}
	var made []route.Partition
	for made == nil {
		if made = col.named(s, start, end, slots, generation); made != nil {
			foreign, err := c.foreign(ctx, made)
			if err != nil {
				return nil, err
			}
			if foreign {
				made = nil
			}
		}
		if made == nil {
			generation = int(max(r.generation, int64(generation))) + 1
		}
	}
	for i := range made {
		made[i].Since = c.nowMillis()
	}
	r.generation = max(r.generation, int64(generation))
	if err := c.store.putRecord(ctx, &r); err != nil {
		return nil, err
	}
	if err := c.store.putPartitions(ctx, ns, made); err != nil {
		return nil, err
	}
	c.publish(ns, &r, slices.Concat(col.All, made))
	return made, nil
}

// named returns the partitions of a range under a generation, or nil if one of the names is taken.
func (col *Collection) named(s *Snapshot, start, end int64, slots []int, generation int) []route.Partition {
	first := col.backendOf(start)
	made := make([]route.Partition, len(slots))
	for i, slot := range slots {
		p := route.Partition{Slot: slot, Start: start, End: end, Generation: generation}
		p.Backend = col.config.Over[(first+max(slot, 0))%len(col.config.Over)]
		p.Database, p.Collection = col.config.PhysicalName(slot, start, generation)
		if s.taken(p.Database, p.Collection) {
			return nil
		}
		made[i] = p
	}
	return made
}

// foreign reports whether a collection has the name of one of the partitions, which are not recorded yet: it is somebody else's, with documents or
// without, and stays.
func (c *Catalog) foreign(ctx context.Context, partitions []route.Partition) (bool, error) {
	found := false
	errs := each(partitions, func(p route.Partition) error {
		d, err := c.deployment(p)
		if err != nil {
			return err
		}
		there, err := d.exists(ctx, p.Database, p.Collection)
		if err == nil && there {
			err = errForeign
		}
		return err
	})
	for i, err := range errs {
		if errors.Is(err, errForeign) {
			c.warnForeign(partitions[i])
			found, errs[i] = true, nil
		}
	}
	return found, errors.Join(errs...)
}

func (c *Catalog) warnForeign(p route.Partition) {
	c.log.Warn("a collection that the catalog does not know has the name of a partition: it is left alone, and the partition gets another name",
		"backend", p.Backend, "collection", p.Name())
}

// backendOf returns the index into Over that a range from start begins with: slots are spread over all backends in turn; without a hash layout
// each range goes to the backend after that of the range before.
func (col *Collection) backendOf(start int64) int {
	if col.Table.Layout.Hash != nil {
		return 0
	}
	last := ""
	for _, p := range col.All {
		if p.Start < start {
			last = p.Backend
		}
	}
	if last == "" {
		return 0
	}
	return slices.Index(col.config.Over, last) + 1
}

// finish makes recorded partitions physically and makes them Active. The caller holds the collection's changes.
func (c *Catalog) finish(ctx context.Context, ns string, pending []route.Partition) error {
	col := c.Snapshot().Collection(ns)
	errs := each(pending, func(p route.Partition) error { return c.makePhysical(ctx, col, p) })
	var foreign []route.Partition
	for i, err := range errs {
		if errors.Is(err, errForeign) {
			c.warnForeign(pending[i])
			foreign = append(foreign, pending[i])
			errs[i] = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(foreign) > 0 {
		return c.makeElsewhere(ctx, ns, pending, foreign)
	}
	return c.activate(ctx, ns, pending)
}

// activate makes partitions that are physically there Active.
func (c *Catalog) activate(ctx context.Context, ns string, made []route.Partition) error {
	col := c.Snapshot().Collection(ns)
	made = slices.Clone(made)
	for i := range made {
		made[i].State, made[i].Since = route.Active, c.nowMillis()
	}
	if err := c.store.putPartitions(ctx, ns, made); err != nil {
		return err
	}
	c.publish(ns, col.record, replaced(col.All, made))
	return nil
}

// makeElsewhere gives partitions whose names turned out to be taken by other collections the next generation, and makes all of a range that
// are pending.
func (c *Catalog) makeElsewhere(ctx context.Context, ns string, pending, foreign []route.Partition) error {
	col := c.Snapshot().Collection(ns)
	if err := c.store.deletePartitions(ctx, foreign); err != nil {
		return err
	}
	r := *col.record
	r.used = max(r.used, foreign[0].Start+1) // so that recordNew does not give the name again
	c.publish(ns, &r, without(col.All, foreign))
	slots := make([]int, len(foreign))
	for i, p := range foreign {
		slots[i] = p.Slot
	}
	made, err := c.recordNew(ctx, ns, foreign[0].Start, foreign[0].End, slots)
	if err != nil {
		return err
	}
	return c.finish(ctx, ns, append(without(pending, foreign), made...))
}

// makePhysical makes a partition's collection with its options and indexes. It may be there already, from an attempt that was cut short, since when an
// index may have been dropped; but then it is without documents: errForeign otherwise.
func (c *Catalog) makePhysical(ctx context.Context, col *Collection, p route.Partition) error {
	d, err := c.deployment(p)
	if err != nil {
		return err
	}
	if p.Database != col.Database {
		if err := c.databases.acquire(ctx); err != nil {
			return err
		}
		defer c.databases.release()
	}
	there, err := d.exists(ctx, p.Database, p.Collection)
	if err != nil {
		return err
	}
	if there {
		filled, err := d.holdsDocuments(ctx, p.Database, p.Collection)
		if err != nil {
			return err
		}
		if filled {
			return errForeign
		}
		_, err = d.alignIndexes(ctx, p, col.Indexes)
		return err
	}
	if err := d.create(ctx, p.Database, p.Collection, col.Options); err != nil {
		return err
	}
	return d.createIndexes(ctx, p.Database, p.Collection, col.Indexes)
}

// replaced returns partitions with others in the place of those of the same backend and name.
func replaced(all, by []route.Partition) []route.Partition {
	return append(without(all, by), by...)
}

// without returns partitions except those with the backend and name of others.
func without(all, others []route.Partition) []route.Partition {
	ids := map[string]bool{}
	for _, p := range others {
		ids[partitionID(p)] = true
	}
	out := make([]route.Partition, 0, len(all)+len(others))
	for _, p := range all {
		if !ids[partitionID(p)] {
			out = append(out, p)
		}
	}
	return out
}
