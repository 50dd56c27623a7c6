package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"oxbow/internal/backend"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// Reload applies another configuration, or refuses it whole with the reasons: see config.Diff. A collection that gets a layout must not have
// documents yet.
func (c *Catalog) Reload(ctx context.Context, cfg *config.Config) error {
	now := c.Snapshot()
	if err := config.Diff(now.config, cfg, now.made); err != nil { // at once: the rest waits for what changes now
		return fmt.Errorf("the configuration can't be applied: %w", err)
	}
	release, err := c.stopChanges(ctx, cfg)
	if err != nil {
		return err
	}
	defer release()
	if err := c.users.changes.acquire(ctx); err != nil {
		return err
	}
	defer c.users.changes.release()
	for {
		old := c.Snapshot()
		next, unlisted, err := c.reconfigured(ctx, old, cfg)
		if err != nil {
			return fmt.Errorf("the configuration can't be applied: %w", err)
		}
		if c.replace(old, next, unlisted, cfg) {
			return nil
		}
	}
}

// replace publishes the snapshot of another configuration, unless the one that it was made from is not the current one any more.
func (c *Catalog) replace(old, next *Snapshot, unlisted map[string]*record, cfg *config.Config) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot.Load() != old {
		return false
	}
	c.mu.unlisted = unlisted
	next.Version = old.Version + 1
	c.snapshot.Store(next)
	c.publishUsers(cfg.Users)
	return true
}

// reconfigured returns a snapshot with another configuration, and the records of collections that it does not have.
func (c *Catalog) reconfigured(ctx context.Context, old *Snapshot, cfg *config.Config) (*Snapshot, map[string]*record, error) {
	if err := config.Diff(old.config, cfg, old.made); err != nil {
		return nil, nil, err
	}
	l := &stored{records: map[string]*record{}, partitions: map[string][]route.Partition{}}
	c.mu.Lock()
	maps.Copy(l.records, c.mu.unlisted)
	c.mu.Unlock()
	for ns, col := range old.collections {
		l.records[ns], l.partitions[ns] = col.record, slices.Clone(col.All)
	}
	next, unlisted, err := c.configured(cfg, l)
	if err != nil {
		return nil, nil, err
	}
	return next, unlisted, c.refuseUnfit(ctx, next, l, unlisted)
}

// made reports whether a collection has partitions.
func (s *Snapshot) made(ns string) bool { return len(s.collections[ns].All) > 0 }

// stopChanges holds the changes of every collection, and all that is done with one that another configuration does not have.
func (c *Catalog) stopChanges(ctx context.Context, next *config.Config) (release func(), err error) {
	var all []semaphore
	for _, col := range c.Snapshot().Collections("") {
		g, err := c.gate(col.Namespace())
		if err != nil {
			return nil, err
		}
		if next.Collection(col.Namespace()) == nil {
			all = append(all, g.indexing, g.physical)
		}
		all = append(all, g.changes)
	}
	return acquireAll(ctx, all...)
}

// configured returns a snapshot of what is stored with a configuration, and the records of collections that the configuration does not have. The
// partitions that exist must fit.
func (c *Catalog) configured(cfg *config.Config, l *stored) (*Snapshot, map[string]*record, error) {
	next := &Snapshot{collections: map[string]*Collection{}, config: cfg}
	unlisted := maps.Clone(l.records)
	var errs []error
	for i := range cfg.Collections {
		entry := &cfg.Collections[i]
		ns := entry.Namespace()
		r, all := l.records[ns], l.partitions[ns]
		delete(unlisted, ns)
		if r == nil {
			r = newRecord(ns)
		}
		if len(all) > 0 {
			errs = append(errs, r.stored().Change(entry))
		}
		for _, p := range all {
			if _, ok := c.backends[p.Backend]; !ok {
				errs = append(errs, fmt.Errorf("collections.%s: partition %s lies on backend %s, which is not configured", ns, p.Name(), p.Backend))
				break
			}
		}
		next.collections[ns] = newCollection(entry, r, all, c.Shared())
	}
	return next, unlisted, errors.Join(errs...)
}

// refuseUnfit refuses a configuration that lacks a collection with partitions, or gives a layout to a plain one that has documents.
func (c *Catalog) refuseUnfit(ctx context.Context, next *Snapshot, l *stored, unlisted map[string]*record) error {
	var errs []error
	for ns, r := range unlisted {
		if len(l.partitions[ns]) > 0 {
			errs = append(errs, r.stored().Change(nil))
		}
	}
	for _, col := range next.Collections("") {
		if len(col.All) == 0 && !col.Created {
			errs = append(errs, c.refuseDocuments(ctx, next.config, col.config))
		}
	}
	return errors.Join(errs...)
}

// refuseDocuments refuses a layout for a plain collection that has documents: they could not be found any more.
func (c *Catalog) refuseDocuments(ctx context.Context, cfg *config.Config, entry *config.Collection) error {
	d, ok := c.backends[cfg.BackendFor(entry.Database)]
	if !ok {
		return fmt.Errorf("backend %s is not open", cfg.BackendFor(entry.Database))
	}
	there, err := d.exists(ctx, entry.Database, entry.Name)
	if err != nil || !there {
		return err
	}
	filled, err := d.holdsDocuments(ctx, entry.Database, entry.Name)
	if err == nil && filled {
		err = fmt.Errorf("collections.%s: a plain collection of that name has documents, which the layout would not find; legacy partitions are planned, not built yet", entry.Namespace())
	}
	return err
}

// findStray returns physical collections that match a template and that the catalog does not know.
func (c *Catalog) findStray(ctx context.Context) ([]backend.Namespace, error) {
	s := c.Snapshot()
	var (
		stray []backend.Namespace
		errs  []error
	)
	for _, name := range slices.Sorted(maps.Keys(c.backends)) {
		d := c.backends[name]
		databases, err := d.databases(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, database := range databases {
			if !s.mayHold(database) {
				continue
			}
			collections, err := d.collections(ctx, database)
			errs = append(errs, err)
			for _, collection := range collections {
				if col, _ := s.Physical(name, database, collection); col == nil && s.matches(database, collection) {
					stray = append(stray, backend.Namespace{Database: database, Collection: collection})
				}
			}
		}
	}
	return stray, errors.Join(errs...)
}

// mayHold reports whether partitions of a collection could be in a database.
func (s *Snapshot) mayHold(database string) bool {
	for _, c := range s.collections {
		if c.config.MatchesDatabase(database) {
			return true
		}
	}
	return false
}

// matches reports whether a physical name could be a partition's.
func (s *Snapshot) matches(database, collection string) bool {
	for _, c := range s.collections {
		if c.config.Matches(database, collection) {
			return true
		}
	}
	return false
}
