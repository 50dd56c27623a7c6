package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// markIndexed stores that every partition has the indexes of the list as it was changed last with the change listed. If it has been changed again since, whoever
// did that is still at it. The caller holds the collection's indexing.
func (c *Catalog) markIndexed(ctx context.Context, g *gate, ns string, listed int64) error {
	release, err := c.enter(ctx, ns, g.changes)
	if err != nil {
		return err
	}
	defer release()
	err = c.deciding(ctx, func() error {
		r := *c.Snapshot().Collection(ns).record
		if r.listed != listed || !r.indexing {
			return nil
		}
		r.indexing = false
		return c.storeRecord(ctx, r)
	})
	if err != nil {
		return err
	}
	_, err = c.members.announce(ctx)
	return err
}

// storeRecord stores a collection's record and publishes it.
func (c *Catalog) storeRecord(ctx context.Context, r record) error {
	stored, err := c.store.swapRecord(ctx, r)
	if err == nil {
		c.publish(r.namespace, stored, nil, nil)
	}
	return err
}

func allDone(outcomes []Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(t Outcome) bool { return t.Err != nil })
}

// finishIndexes makes the partitions of a collection follow its list of indexes, after an index command that was cut short. A unique index whose
// keys turn out to be there twice is taken back everywhere: the command that wanted it was never answered, or told so.
func (c *Catalog) finishIndexes(ctx context.Context, ns string) error {
	g, err := c.gate(ns)
	if err != nil {
		return err
	}
	if !g.indexing.tryAcquire() {
		return nil // a command is at work
	}
	defer g.indexing.release()
	col := c.Snapshot().Collection(ns)
	if col == nil || !col.record.indexing {
		return nil
	}
	r := col.record
	c.log.Info("finishing an index command that was cut short", "collection", ns)
	var duplicates []string
	outcomes, err := c.onPartitions(ctx, g, ns, func(d deployment, p route.Partition) error {
		refused, err := d.alignIndexes(ctx, p, c.Snapshot().Collection(ns).Indexes)
		duplicates = append(duplicates, refused...)
		return err
	})
	if err == nil && len(duplicates) > 0 {
		c.log.Warn("unique indexes are taken back: keys are there twice", "collection", ns, "indexes", duplicates)
		var listed int64
		if outcomes, listed, err = c.unlistIndexes(ctx, g, ns, duplicates); err == nil {
			r = &record{listed: listed}
		}
	}
	for _, t := range outcomes {
		err = errors.Join(err, t.Err)
	}
	if err != nil {
		return fmt.Errorf("finish the indexes of %s: %w", ns, err)
	}
	return c.markIndexed(ctx, g, ns, r.listed)
}

// alignIndexes makes a partition have the indexes of a list and no others. duplicates are those that were refused since a key is there twice.
func (d deployment) alignIndexes(ctx context.Context, p route.Partition, list []bson.Document) (duplicates []string, err error) {
	there, err := d.indexes(ctx, p.Database, p.Collection)
	if err != nil {
		return nil, err
	}
	var lacking []bson.Document
	for _, spec := range list {
		same := func(other bson.Document) bool {
			return nameOf(other) == nameOf(spec) && slices.Equal(keyOf(other), keyOf(spec)) && sameSpec(other, spec)
		}
		if i := slices.IndexFunc(there, same); i >= 0 {
			there = slices.Delete(there, i, i+1)
		} else {
			lacking = append(lacking, spec)
		}
	}
	for _, spec := range there {
		if isIDKey(keyOf(spec)) {
			continue
		}
		if err := d.dropIndex(ctx, p.Database, p.Collection, nameOf(spec)); err != nil {
			return nil, err
		}
	}
	for _, spec := range lacking {
		err := d.createIndexes(ctx, p.Database, p.Collection, []bson.Document{spec})
		if mongoerr.Is(err, mongoerr.DuplicateKey) {
			duplicates = append(duplicates, nameOf(spec))
		} else if err != nil {
			return duplicates, err
		}
	}
	return duplicates, nil
}

// indexes lists the indexes of a physical collection.
func (d deployment) indexes(ctx context.Context, database, collection string) ([]bson.Document, error) {
	specs, err := d.read(ctx, database, func(dst []byte) []byte {
		return bsoncore.AppendStringElement(dst, "listIndexes", collection)
	})
	if err != nil {
		return nil, fmt.Errorf("list the indexes of %s.%s: %w", database, collection, err)
	}
	return specs, nil
}

// dropTrials drops what tryIndexes left when the process ended within it. On a deployment that other gateways may use as well a trial
// can be theirs, and stays.
func (c *Catalog) dropTrials(ctx context.Context) error {
	var errs []error
	for _, d := range c.backends {
		if !d.run.Abilities().Embedded {
			continue
		}
		names, err := d.collections(ctx, c.Database())
		errs = append(errs, err)
		for _, name := range names {
			if strings.HasPrefix(name, trialPrefix) {
				errs = append(errs, d.drop(ctx, c.Database(), name))
			}
		}
	}
	return errors.Join(errs...)
}
