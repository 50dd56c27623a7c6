package catalog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/config"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Catalog is the live catalog. Its methods are safe for concurrent use.
type Catalog struct {
	log      *slog.Logger
	now      func() time.Time
	backends map[string]deployment
	store    store
	stray    []backend.Namespace

	members *membership // nil: this gateway has the catalog for itself

	snapshot atomic.Pointer[Snapshot]
	users    users

	// databases is held while partitions that have databases of their own are made, and while such a database is dropped.
	databases semaphore

	noted     atomic.Int64 // decisions
	finishing semaphore    // one pass over what waits for other gateways, in Keep

	mu struct {
		sync.Mutex // never held over I/O; publishing takes it
		gates      map[string]*gate
		unlisted   map[string]*record // of collections that the configuration does not have any more
		published  int64              // counts what publish has done
		dropping   map[string]int64   // partitions, by id → the version that every gateway must have seen before they are dropped
	}
}

// Options are what Open needs.
type Options struct {
	Config   *config.Config
	Backends map[string]backend.Backend // by the configuration's names; the catalog closes none
	Log      *slog.Logger
	Now      func() time.Time
}

// gate orders the changes of one collection. Where several are held they are acquired in this order.
type gate struct {
	indexing semaphore // one index command at a time
	physical semaphore // an index is built on a partition, or partitions are dropped
	changes  semaphore // records change: partitions are made, hidden, dropped, the index list changes
}

// semaphore is a lock that a context can give up on, for holding over I/O.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

func (s semaphore) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of the collection: %w", context.Cause(ctx))
	}
}

func (s semaphore) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) release() { <-s }

// acquireAll acquires semaphores in order and returns what releases them.
func acquireAll(ctx context.Context, list ...semaphore) (release func(), err error) {
	held := 0
	release = func() {
		for _, s := range list[:held] {
			s.release()
		}
	}
	for _, s := range list {
		if err := s.acquire(ctx); err != nil {
			release()
			return nil, err
		}
		held++
	}
	return release, nil
}

// Open loads the catalog, finishes or undoes what a crash cut short, and publishes the first snapshot. What a backend that does
// not answer keeps from being finished is logged, and left to Sweep; so are indexes, which can take long to build. The configuration must not contradict the partitions that exist: see Reload.
func Open(ctx context.Context, opts Options) (*Catalog, error) {
	c := &Catalog{log: opts.Log, now: opts.Now, backends: map[string]deployment{}, databases: newSemaphore(), users: users{changes: newSemaphore()}, finishing: newSemaphore()}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	for name, b := range opts.Backends {
		c.backends[name] = deployment{name: name, run: b}
	}
	for _, b := range opts.Config.Backends {
		if _, ok := c.backends[b.Name]; !ok {
			return nil, fmt.Errorf("backend %s of the configuration is not open", b.Name)
		}
	}
	c.store = store{on: c.backends[opts.Config.Default], database: opts.Config.CatalogDatabase()}
	c.mu.gates, c.mu.unlisted, c.mu.dropping = map[string]*gate{}, map[string]*record{}, map[string]int64{}
	if err := c.begin(ctx, opts.Config); err != nil {
		return nil, err
	}
	if err := errors.Join(c.sweepPartitions(ctx), c.dropTrials(ctx)); err != nil {
		c.log.Warn("partitions could not be finished or undone", "error", err)
	}
	var err error
	if c.stray, err = c.findStray(ctx); err != nil {
		c.log.Warn("backends could not be searched for partitions that the catalog does not know", "error", err)
	}
	for _, ns := range c.stray {
		c.log.Warn("a collection has the name of a partition, and the catalog does not know it", "collection", ns.String())
	}
	return c, nil
}

// begin publishes the first snapshot; of a catalog that others may share, as one of its gateways.
func (c *Catalog) begin(ctx context.Context, cfg *config.Config) error {
	if !cfg.Shared() {
		return c.read(ctx, cfg)
	}
	c.share(cfg)
	err := c.members.join(ctx)
	if err == nil {
		err = c.read(ctx, cfg)
	}
	if err == nil {
		err = c.members.opened(ctx)
	}
	if err != nil {
		c.leave()
		return err
	}
	c.underLease()
	return nil
}

// read reads the catalog and publishes it as the first snapshot.
func (c *Catalog) read(ctx context.Context, cfg *config.Config) error {
	l, err := c.store.load(ctx)
	if err != nil {
		return err
	}
	if err := c.loadUsers(ctx, cfg.Users); err != nil {
		return err
	}
	first, unlisted, err := c.configured(cfg, l)
	if err == nil {
		err = c.refuseUnfit(ctx, first, l, unlisted)
	}
	if err != nil {
		return err
	}
	c.mu.unlisted = unlisted
	first.Version = 1
	c.snapshot.Store(first)
	return nil
}

// Database is the name of the catalog's database: on the default backend it holds the catalog, on every one indexes are tried in it. It is closed to
// clients.
func (c *Catalog) Database() string { return c.store.database }

// Snapshot returns the current snapshot: a pointer load.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// BackendFor returns the name of the backend that serves a plain database.
func (c *Catalog) BackendFor(database string) string { return c.Snapshot().BackendFor(database) }

// Stray returns the physical collections that match a template but that the catalog does not know, as found by Open.
func (c *Catalog) Stray() []backend.Namespace { return slices.Clone(c.stray) }

// gate returns the gate of a collection, and NamespaceNotFound if it has no layout.
func (c *Catalog) gate(ns string) (*gate, error) {
	if c.Snapshot().Collection(ns) == nil {
		return nil, noLayout(ns)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mu.gates[ns]
	if g == nil {
		g = &gate{indexing: newSemaphore(), physical: newSemaphore(), changes: newSemaphore()}
		c.mu.gates[ns] = g
	}
	return g, nil
}

func noLayout(ns string) error {
	return mongoerr.New(mongoerr.NamespaceNotFound, "collection %s has no layout", ns)
}

// enter acquires a part of a collection's gate, and NamespaceNotFound if the collection went from the configuration meanwhile.
func (c *Catalog) enter(ctx context.Context, ns string, part semaphore) (release func(), err error) {
	if err := part.acquire(ctx); err != nil {
		return nil, err
	}
	if c.Snapshot().Collection(ns) == nil {
		part.release()
		return nil, noLayout(ns)
	}
	return part.release, nil
}

// beginChange waits until nothing else of a collection changes, and keeps it so until release is called.
func (c *Catalog) beginChange(ctx context.Context, ns string) (release func(), err error) {
	g, err := c.gate(ns)
	if err != nil {
		return nil, err
	}
	return c.enter(ctx, ns, g.changes)
}

// publish puts what was stored of a collection into a new snapshot: its record (nil: no other one), partitions that were added or changed, and those
// that are forgotten. What has come from other gateways meanwhile, and is newer, stays.
func (c *Catalog) publish(ns string, r *record, put, gone []route.Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.published++
	old := c.snapshot.Load()
	col := old.collections[ns]
	if col == nil {
		return
	}
	if r == nil || r.change < col.record.change {
		r = col.record
	}
	known := make(map[string]int64, len(col.All))
	for _, p := range col.All {
		known[partitionID(p)] = p.Change
	}
	put = slices.DeleteFunc(slices.Clone(put), func(p route.Partition) bool {
		change, there := known[partitionID(p)]
		if !there && p.Change > 1 {
			c.members.distrust() // it may have been dropped meanwhile
		}
		return there && change > p.Change
	})
	next := &Snapshot{Version: old.Version + 1, collections: maps.Clone(old.collections), config: old.config}
	next.collections[ns] = newCollection(col.config, r, append(without(without(col.All, gone), put), put...), c.Shared())
	c.snapshot.Store(next)
}

// nowMillis returns now in milliseconds since 1970.
func (c *Catalog) nowMillis() int64 { return c.now().UnixMilli() }

// each runs f on partitions, a few at a time, and returns for each its error.
func each(partitions []route.Partition, f func(p route.Partition) error) []error {
	const atOnce = 8
	errs := make([]error, len(partitions))
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, p := range partitions {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(p)
		})
	}
	group.Wait()
	return errs
}

// deployment returns a partition's backend.
func (c *Catalog) deployment(p route.Partition) (deployment, error) {
	d, ok := c.backends[p.Backend]
	if !ok {
		return deployment{}, fmt.Errorf("partition %s lies on backend %s, which is not configured", p.Name(), p.Backend)
	}
	return d, nil
}

// newUUID returns a random UUID (version 4).
func newUUID() (id [16]byte) {
	rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

func split(ns string) (database, collection string) {
	database, collection, _ = strings.Cut(ns, ".")
	return database, collection
}

var errForeign = errors.New("a collection that is not a partition has the name")
