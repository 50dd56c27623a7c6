package oxbow

import (
	"errors"
	"fmt"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/backend/remote"
	"oxbow/internal/config"
	"oxbow/internal/observe"
	"oxbow/internal/plan"
)

// openBackends opens all backends of a configuration, or none.
func (g *Gateway) openBackends(cfg *config.Config) (map[string]backend.Backend, error) {
	backends := make(map[string]backend.Backend, len(cfg.Backends))
	for _, b := range cfg.Backends {
		opened, err := g.openBackend(b, cfg.CatalogDatabase())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open backend %s: %w", b.Name, err), closeBackends(backends))
		}
		backends[b.Name] = opened
	}
	return backends, nil
}

func (g *Gateway) openBackend(b config.Backend, catalogDatabase string) (backend.Backend, error) {
	if b.Embedded == nil {
		return remote.OpenNamed(b.Name, b.URI, g.log.With("backend", b.Name))
	}
	cache, memtable := g.memory.Of(b.Embedded)
	return embedded.Open(embedded.Options{
		Store: embedded.Store{
			Dir: b.Embedded.Dir, FS: g.options.fs, CacheBytes: cache, MemTableBytes: memtable, Memory: g.budget,
			SyncAlways: b.Embedded.SyncAlways, Log: g.log.With("backend", b.Name),
			ReserveDatabase: catalogDatabase, // a partition's state is stored before it is dropped
		},
	})
}

// remote are the backends that connections lead to.
func (g *Gateway) remote() map[string]observe.Remote {
	remote := make(map[string]observe.Remote)
	for name, b := range g.backends {
		if r, ok := b.(observe.Remote); ok {
			remote[name] = r
		}
	}
	return remote
}

func closeBackends(backends map[string]backend.Backend) error {
	var errs []error
	for name, b := range backends {
		if err := b.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close backend %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// gone reports whether a partition that a cursor has yet to reach was dropped meanwhile.
func (g *Gateway) gone(t plan.Target) bool {
	return !g.catalog.Snapshot().Stands(t.Logical, t.Backend, t.Namespace)
}

// width is how many partitions of a collection one command is sent to at a time; 0 where the collection has no layout any more.
func (g *Gateway) width(namespace string) int {
	if c := g.catalog.Snapshot().Collection(namespace); c != nil {
		return c.Fanout
	}
	return 0
}
