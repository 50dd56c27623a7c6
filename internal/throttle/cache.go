package throttle

import (
	"context"

	"oxbow/internal/bson"
)

// dirtyProbe looks at the share of WiredTiger's cache that is not written to disk yet. From 20 % on operations of clients have to write it themselves
// (https://source.wiredtiger.com/develop/tune_cache.html: eviction_dirty_trigger).
type dirtyProbe struct{ *view }

// Name implements Probe.
func (dirtyProbe) Name() string { return Dirty }

// Look implements Probe.
func (p dirtyProbe) Look(ctx context.Context) (Verdict, error) {
	return p.over(ctx, Dirty, "the dirty share of the cache", func(l *load) float64 { return l.dirty })
}

// usedProbe looks at the share of WiredTiger's cache that is in use. It lies at 80 %, and from 95 % on operations of clients have to make room themselves
// (eviction_target and eviction_trigger, same page).
type usedProbe struct{ *view }

// Name implements Probe.
func (usedProbe) Name() string { return Used }

// Look implements Probe.
func (p usedProbe) Look(ctx context.Context) (Verdict, error) {
	return p.over(ctx, Used, "the used share of the cache", func(l *load) float64 { return l.used })
}

// parseCache reads wiredTiger.cache.
func (l *load) parseCache(reply bson.Document) {
	size, ok := figure(reply, "wiredTiger", "cache", "maximum bytes configured")
	if !ok || size <= 0 {
		return
	}
	if n, ok := figure(reply, "wiredTiger", "cache", "tracked dirty bytes in the cache"); ok {
		l.dirty = n / size
	}
	if n, ok := figure(reply, "wiredTiger", "cache", "bytes currently in the cache"); ok {
		l.used = n / size
	}
}
