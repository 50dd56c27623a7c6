package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// share makes this gateway one of several on the catalog: see membership.
func (c *Catalog) share(cfg *config.Config) {
	c.members = newMembership(c.store, cfg.Lease, cfg.Longest, c.log, c.reload)
	c.store.members = c.members
	c.members.store.members = c.members
}

// underLease lets the catalog do nothing on backends without the lease any more.
func (c *Catalog) underLease() {
	for name, d := range c.backends {
		c.backends[name] = deployment{name: name, run: leased{d.run, c.members}}
	}
}

// leased is a backend that gets nothing from a gateway without a lease.
type leased struct {
	backend.Backend
	members *membership
}

func (l leased) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if err := l.members.check(); err != nil {
		return nil, err
	}
	return l.Backend.Run(ctx, req)
}

// Keep keeps this gateway's lease on a shared catalog, brings news from the other gateways, and finishes what had to wait for them, until ctx ends: then
// it leaves. It returns at once where the catalog is not shared.
func (c *Catalog) Keep(ctx context.Context) {
	if c.members == nil {
		return
	}
	for {
		c.beat(ctx)
		select {
		case <-ctx.Done():
			c.leave()
			return
		case <-time.After(min(pause, c.members.lease/5)):
		}
	}
}

// beat renews the lease, and does what is due because of the others.
func (c *Catalog) beat(ctx context.Context) {
	if err := c.members.heartbeat(ctx); err != nil {
		return // it was logged
	}
	if err := c.members.endOthers(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("the lease of a gateway could not be ended", "error", err)
	}
	if !c.finishing.tryAcquire() {
		return
	}
	go func() {
		defer c.finishing.release()
		if err := c.finishDrops(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("partitions could not be dropped yet", "error", err)
		}
	}()
}

func (c *Catalog) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), c.members.lease/2)
	defer cancel()
	if err := c.finishing.acquire(ctx); err != nil {
		return
	}
	defer c.finishing.release()
	if err := c.members.leave(ctx); err != nil {
		c.log.Warn("the other gateways could not be told that this one ends", "error", err)
	}
}

// reload reads the whole catalog and publishes it. What this gateway itself has stored while it was being read may lack in it: then it is read again.
func (c *Catalog) reload(ctx context.Context) error {
	for {
		c.mu.Lock()
		before := c.mu.published
		c.mu.Unlock()
		old := c.Snapshot()
		l, err := c.store.load(ctx)
		if err != nil {
			return err
		}
		list, err := c.storedUsers(ctx)
		if err != nil {
			return err
		}
		next, unlisted, err := c.configured(old.config, l)
		if err != nil {
			return fmt.Errorf("the catalog does not fit this gateway's configuration: %w", err)
		}
		c.mu.Lock()
		if c.mu.published != before || c.snapshot.Load().config != old.config {
			c.mu.Unlock()
			continue
		}
		c.mu.unlisted = unlisted
		next.Version = c.snapshot.Load().Version + 1
		c.snapshot.Store(next)
		c.users.stored = list
		c.publishUsers(old.config.Users)
		c.mu.Unlock()
		return nil
	}
}

// tries bounds how often a change is decided again because another one came first.
const tries = 16

// deciding runs a change until it does not lose to another one. Between two tries the catalog is read again.
func (c *Catalog) deciding(ctx context.Context, change func() error) error {
	for range tries {
		err := change()
		if err == nil {
			return nil
		}
		if !errors.Is(err, errLost) {
			c.members.distrust() // it may have been stored
			return err
		}
		if err := c.reload(ctx); err != nil {
			return err
		}
	}
	return mongoerr.New(mongoerr.WriteConflict, "the change of the catalog lost to another one %d times", tries)
}

// ErrDecided says that another gateway has decided about a partition before. It is wrapped around what a client gets.
var ErrDecided = errors.New("another gateway has decided already")

// mine reports whether a partition's state is this gateway's to carry out: it brought it about, or whoever did is gone.
func (c *Catalog) mine(p route.Partition) bool { return !c.members.live(p.By) }

// atWork runs what makes a partition's collection if it is not there, a change of its indexes among it, so that no other gateway drops the partition
// meanwhile; errLost where one is about to.
func (c *Catalog) atWork(ns string, p route.Partition, work func() error) error {
	if c.members == nil {
		return work()
	}
	sending, err := c.Begin(ns, p.Backend, backend.Namespace{Database: p.Database, Collection: p.Collection})
	if mongoerr.Is(err, mongoerr.StaleConfig) {
		return errLost
	}
	if err != nil {
		return err
	}
	answered := false
	defer func() { sending.End(answered) }()
	err = work()
	answered = err == nil
	return err
}

// awaitOther waits until another gateway that lives has carried out the state of one of the partitions, or until there is news of them; for two leases at
// most, since what keeps it from being done may keep on.
func (c *Catalog) awaitOther(ctx context.Context, ns string, others []route.Partition) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*c.members.lease,
		mongoerr.New(mongoerr.ExceededTimeLimit, "another gateway is making a partition of %s, and has not ended yet", ns))
	defer cancel()
	return c.members.await(ctx, func() bool {
		col := c.Snapshot().Collection(ns)
		if col == nil {
			return true
		}
		for _, p := range others {
			if now := col.Partition(p.Name()); now == nil || now.Change != p.Change || c.mine(*now) {
				return true
			}
		}
		return false
	})
}
