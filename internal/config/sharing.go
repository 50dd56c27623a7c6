package config

import (
	"time"

	"github.com/goccy/go-yaml/ast"
)

// The bounds of lease and longest: a lease is renewed about every second, and hold must have room for both.
const (
	minLease, maxLease     = 2 * time.Second, 5 * time.Minute
	minLongest, maxLongest = time.Second, time.Hour
)

// readSharing reads the keys of a catalog that several gateways share.
func (cfg *Config) readSharing(m *mapping) {
	cfg.Lease = m.durationWithin("lease", minLease, maxLease, DefaultLease)
	cfg.Longest = m.durationWithin("longest", minLongest, maxLongest, DefaultLongest)
	if cfg.Shared() {
		return
	}
	for _, key := range []string{"lease", "longest"} {
		if n := m.valueOf(key); n != nil {
			m.add(n, key, "needs a catalog on a server: on an embedded backend this gateway has it for itself")
		}
	}
}

// durationWithin returns a key's duration, which has bounds.
func (m *mapping) durationWithin(key string, least, most, otherwise time.Duration) time.Duration {
	d, n := m.duration(key)
	if n == nil {
		return otherwise
	}
	if d < least || d > most {
		m.add(n, m.child(key), "%s is not between %s and %s", d, least, most)
	}
	return d
}

// checkHold refuses a hold that ends before the last of what an insert can do that another gateway sent when the partition was still in sight: it
// has begun before the lease of a gateway that knows nothing of the hiding can have ended, and takes Longest at most.
func (cfg *Config) checkHold(c *Collection, m *mapping, at ast.Node) {
	if least := cfg.Lease + cfg.Longest; cfg.Shared() && c.Hold < least {
		m.add(at, m.child("hold"), "%s is less than lease + longest (%s + %s): a gateway that shares the catalog may write for as long into a partition that was hidden",
			c.Hold, cfg.Lease, cfg.Longest)
	}
}
