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
	release, err := c.stopChanges(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.users.changes.acquire(ctx); err != nil {
		return err
	}
	defer c.users.changes.release()
	old := c.Snapshot()
	made := func(ns string) bool { return len(old.collections[ns].All) > 0 }
	if err := config.Diff(old.config, cfg, made); err != nil {
		return fmt.Errorf("the configuration can't be applied: %w", err)
	}
	next, err := c.configured(ctx, old, cfg, nil)
	if err != nil {
		return fmt.Errorf("the configuration can't be applied: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ns, col := range old.collections {
		if next.collections[ns] == nil {
			c.mu.unlisted[ns] = col.record
		}
	}
	c.snapshot.Store(next)
	c.publishUsers(cfg.Users)
	return nil
}

// stopChanges holds the changes of every collection.
func (c *Catalog) stopChanges(ctx context.Context) (release func(), err error) {
	var all []semaphore
	for _, col := range c.Snapshot().Collections("") {
		g, err := c.gate(col.Namespace())
		if err != nil {
			return nil, err
		}
		all = append(all, g.changes)
	}
	return acquireAll(ctx, all...)
}

// configured returns a snapshot for a configuration: collections that are in old keep their record and partitions, others get those that are stored. The
// partitions that exist must fit.
func (c *Catalog) configured(ctx context.Context, old *Snapshot, cfg *config.Config, stored map[string][]route.Partition) (*Snapshot, error) {
	next := &Snapshot{Version: old.Version + 1, collections: map[string]*Collection{}, config: cfg}
	var errs []error
	c.mu.Lock()
	unlisted := maps.Clone(c.mu.unlisted)
	c.mu.Unlock()
	for i := range cfg.Collections {
		entry := &cfg.Collections[i]
		ns := entry.Namespace()
		r, all := unlisted[ns], stored[ns]
		delete(unlisted, ns)
		if col := old.collections[ns]; col != nil {
			r, all = col.record, slices.Clone(col.All)
		}
		if r == nil {
			r = newRecord(ns)
		}
		if len(all) > 0 {
			errs = append(errs, r.stored().Change(entry))
		} else if !r.created {
			errs = append(errs, c.refuseDocuments(ctx, cfg, entry))
		}
		for _, p := range all {
			if _, ok := c.backends[p.Backend]; !ok {
				errs = append(errs, fmt.Errorf("collections.%s: partition %s lies on backend %s, which is not configured", ns, p.Name(), p.Backend))
				break
			}
		}
		next.collections[ns] = newCollection(entry, r, all)
	}
	for ns, r := range unlisted {
		if len(stored[ns]) > 0 {
			errs = append(errs, r.stored().Change(nil))
		}
	}
	return next, errors.Join(errs...)
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
