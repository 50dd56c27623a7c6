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
// Concurrent calls for one range make it once. It creates the collection if need be. A range whose documents are refused by now, since keep has passed it, is not
// made.
func (c *Catalog) Ensure(ctx context.Context, ns string, places []route.Place) (*Snapshot, error) {
	release, err := c.beginChange(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, p := range places {
		for at := p.Start; ; {
			end, err := c.decideRange(ctx, ns, at)
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
	release, err := c.beginChange(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer release()
	found := false
	err = c.deciding(ctx, func() error {
		col := c.Snapshot().Collection(ns)
		if found = col.Created; found {
			if !sameOptions(col.Options, options) {
				return mongoerr.New(mongoerr.NamespaceExists, "Collection %s already exists.", ns)
			}
			return nil
		}
		return c.markCreated(ctx, ns, options)
	})
	if err != nil || found {
		return c.Snapshot(), err
	}
	if _, err := c.members.announce(ctx); err != nil {
		return nil, err
	}
	if c.Snapshot().Collection(ns).Table.Layout.Time == nil {
		if _, err := c.decideRange(ctx, ns, 0); err != nil {
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

// markCreated stores that a collection exists. What is left of an earlier one of its name, whose drop was cut short, is marked as Dropping before, so that
// nobody takes it for the new one's.
func (c *Catalog) markCreated(ctx context.Context, ns string, options bson.Document) error {
	if err := c.markLeft(ctx, ns); err != nil {
		return err
	}
	col := c.Snapshot().Collection(ns)
	r := *col.record
	r.created, r.uuid = true, newUUID()
	if options != nil {
		r.options = slices.Clone(options)
	}
	r.configure(col.config, col.All)
	stored, err := c.store.swapRecord(ctx, r)
	if err != nil {
		return err
	}
	c.publish(ns, stored, nil, nil)
	return nil
}

// decideRange is ensureRange until it loses to no other change. The caller holds the collection's changes.
func (c *Catalog) decideRange(ctx context.Context, ns string, ms int64) (end int64, err error) {
	err = c.deciding(ctx, func() error {
		end, err = c.ensureRange(ctx, ns, ms)
		return err
	})
	return end, err
}

// ensureRange makes what is missing of the time range around an instant and returns the range's end. What another gateway is making it waits for. The
// caller holds the collection's changes.
func (c *Catalog) ensureRange(ctx context.Context, ns string, ms int64) (end int64, err error) {
	for {
		col := c.Snapshot().Collection(ns)
		// Cut by partitions of every state, so that a hidden one can come back.
		known := route.Table{Layout: col.Table.Layout, Partitions: col.All}
		at := known.At(-1, ms)
		missing, pending := col.lacking(at.Start)
		others := slices.DeleteFunc(slices.Clone(pending), c.mine)
		switch {
		case len(missing)+len(pending) == 0, c.late(col, at.End):
			return at.End, nil
		case !col.Created:
			if err := c.markCreated(ctx, ns, nil); err != nil {
				return 0, err
			}
			continue
		case len(others) > 0:
			if err := c.awaitOther(ctx, ns, others); err != nil {
				return 0, err
			}
			continue
		}
		if len(missing) > 0 {
			made, err := c.recordNew(ctx, ns, at.Start, at.End, missing, nil)
			if err != nil {
				return 0, err
			}
			pending = append(pending, made...)
		}
		return at.End, c.finish(ctx, ns, pending)
	}
}

// late reports whether keep has passed a range whose documents are refused then: the write that wanted it was planned before.
func (c *Catalog) late(col *Collection, end int64) bool {
	t := col.Table.Layout.Time
	return t != nil && t.Keep > 0 && t.Late == route.Reject && end <= c.nowMillis()-t.Keep.Milliseconds()
}

// lacking returns the slots that have no partition to write to in the range from start, and the partitions of the range that are recorded and
// perhaps not made yet. Of a collection that was dropped every slot lacks one.
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
		if p.Start != start || !col.Created {
			continue
		}
		switch p.State {
		case route.Creating, route.Returning:
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

// recordNew stores partitions of a range as Creating, under names that were never used, and publishes them: first in the collection's record, which only
// one gateway can change at a time, so that ranges never overlap; then each by itself. not are partitions that are not made after all.
func (c *Catalog) recordNew(ctx context.Context, ns string, start, end int64, slots []int, not []route.Partition) ([]route.Partition, error) {
	s := c.Snapshot()
	col := s.Collection(ns)
	r := *col.record
	if len(not) > 0 {
		r.used = max(r.used, not[0].Start+1) // so that the names are not given again
	}
	r.configure(col.config, col.All)
	generation := 1
	if start < r.used {
		generation = int(r.generation) + 1
	}
	var made, taken []route.Partition
	for made == nil {
		if made = col.named(s, start, end, slots, generation); made != nil {
			foreign, err := c.foreign(ctx, made)
			if err != nil {
				return nil, err
			}
			if len(foreign) > 0 {
				made, taken = nil, append(taken, foreign...)
			}
		}
		if made == nil {
			generation = int(max(r.generation, int64(generation))) + 1
		}
	}
	for i := range made {
		made[i].Since, made[i].By, made[i].Change = c.nowMillis(), c.members.self(), unstored
	}
	r.generation = max(r.generation, int64(generation))
	r.making = append(creating(without(col.All, not)), made...)
	stored, err := c.store.swapRecord(ctx, r)
	if err != nil {
		return nil, err // what is there may be another gateway's partition that is not known here yet
	}
	for _, p := range taken {
		c.warnForeign(p)
	}
	if made, err = c.storePartitions(ctx, ns, made, made); err != nil {
		return nil, err
	}
	c.publish(ns, stored, made, not)
	return made, nil
}

// creating returns the partitions that are being made.
func creating(all []route.Partition) []route.Partition {
	return slices.DeleteFunc(slices.Clone(all), func(p route.Partition) bool { return p.State != route.Creating })
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

// foreign returns those of partitions, which are not recorded yet, whose names collections have: they are somebody else's, with documents or
// without, and stay.
func (c *Catalog) foreign(ctx context.Context, partitions []route.Partition) (found []route.Partition, err error) {
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
			found, errs[i] = append(found, partitions[i]), nil
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

// finish makes recorded partitions of one range physically, where they are not yet, and makes them Active. The caller holds the collection's changes.
func (c *Catalog) finish(ctx context.Context, ns string, pending []route.Partition) error {
	pending, err := c.storeUnstored(ctx, ns, pending)
	if err != nil {
		return err
	}
	col := c.Snapshot().Collection(ns)
	fresh := creating(pending)
	if err := c.stillWanted(ctx, ns, fresh); err != nil {
		return err
	}
	errs := each(fresh, func(p route.Partition) error { return c.makePhysical(ctx, col, p) })
	var foreign []route.Partition
	for i, err := range errs {
		if errors.Is(err, errForeign) {
			foreign = append(foreign, fresh[i])
			errs[i] = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(foreign) > 0 {
		return c.makeElsewhere(ctx, ns, pending, foreign)
	}
	if err := c.alignNew(ctx, ns, col.Indexes, pending); err != nil {
		return err
	}
	if err := c.open(ctx, ns, pending); err != nil {
		return err
	}
	return c.alignNew(ctx, ns, col.Indexes, pending)
}

// stillWanted returns errLost, and takes partitions away that are being made, when the record does not speak of them any more: the collection was dropped, and
// they with it, before they were stored. From now on who drops the collection finds them stored.
func (c *Catalog) stillWanted(ctx context.Context, ns string, fresh []route.Partition) error {
	if !c.Shared() || len(fresh) == 0 {
		return nil
	}
	r, err := c.store.record(ctx, ns)
	if err != nil {
		return err
	}
	unwanted := slices.DeleteFunc(slices.Clone(fresh), r.sanctions)
	if len(unwanted) == 0 {
		return nil
	}
	if err := c.store.deletePartitions(ctx, unwanted); err != nil {
		return err
	}
	c.note(ctx, ns, c.dropped(unwanted))
	c.publish(ns, nil, nil, unwanted)
	return errLost
}

// storeUnstored stores partitions of which only the record speaks, since whoever put them there came no further. The record is stored again before: had the
// partitions been made, and dropped, in the meantime, it would be another one by now.
func (c *Catalog) storeUnstored(ctx context.Context, ns string, pending []route.Partition) ([]route.Partition, error) {
	left := slices.DeleteFunc(slices.Clone(pending), func(p route.Partition) bool { return p.Change != unstored })
	if len(left) == 0 {
		return pending, nil
	}
	r, err := c.store.swapRecord(ctx, *c.Snapshot().Collection(ns).record)
	if err != nil {
		return nil, err
	}
	if left, err = c.storePartitions(ctx, ns, left, left); err != nil {
		return nil, err
	}
	c.publish(ns, r, left, nil)
	return replaced(pending, left), nil
}

// open makes partitions that are physically there Active, when every gateway reads them.
func (c *Catalog) open(ctx context.Context, ns string, made []route.Partition) error {
	told, err := c.members.announce(ctx)
	if err == nil {
		err = c.members.awaitSeen(ctx, told)
	}
	if err != nil {
		return err
	}
	opened := slices.Clone(made)
	for i := range opened {
		opened[i].State, opened[i].Since = route.Active, c.nowMillis()
	}
	if opened, err = c.storePartitions(ctx, ns, made, opened); err != nil {
		return err
	}
	c.publish(ns, nil, opened, nil)
	_, err = c.members.announce(ctx)
	return err
}

// alignNew makes new partitions follow the list of indexes, should another gateway have changed it since they were made by an older one. It looks at what
// is stored: that gateway has looked for partitions after it had stored its list, so one of both sees the other.
func (c *Catalog) alignNew(ctx context.Context, ns string, list []bson.Document, made []route.Partition) error {
	if !c.Shared() {
		return nil
	}
	r, err := c.store.record(ctx, ns)
	if err != nil || sameList(r.indexes, list) {
		return err
	}
	return errors.Join(each(made, func(p route.Partition) error {
		d, err := c.deployment(p)
		if err != nil {
			return err
		}
		return c.atWork(ns, p, func() error {
			_, err := d.alignIndexes(ctx, p, r.indexes)
			return err
		})
	})...)
}

func sameList(a, b []bson.Document) bool {
	return slices.EqualFunc(a, b, func(x, y bson.Document) bool { return slices.Equal(x, y) })
}

// makeElsewhere gives partitions whose names turned out to be taken by other collections the next generation, and makes all of a range that
// are pending.
func (c *Catalog) makeElsewhere(ctx context.Context, ns string, pending, foreign []route.Partition) error {
	if err := c.store.deletePartitions(ctx, foreign); err != nil {
		return err // with errLost another gateway has finished them, and the documents are the collection's own
	}
	c.note(ctx, ns, c.dropped(foreign))
	slots := make([]int, len(foreign))
	for i, p := range foreign {
		c.warnForeign(p)
		slots[i] = p.Slot
	}
	made, err := c.recordNew(ctx, ns, foreign[0].Start, foreign[0].End, slots, foreign)
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
	return c.atWork(col.Namespace(), p, func() error { return d.make(ctx, col, p) })
}

// make makes a partition's collection.
func (d deployment) make(ctx context.Context, col *Collection, p route.Partition) error {
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
