package catalog

import (
	"cmp"
	"slices"
	"time"
)

// Sharing is a gateway's part in a catalog that others may share, for people and their tools.
type Sharing struct {
	Gateway string // its id, "" while it has none
	Lease   bool   // it serves collections with a layout
	Seen    int64  // the version that its snapshot has
	Latest  int64  // the version that its last beat brought
	Age     time.Duration
	Others  []Other // by id
}

// Other is another gateway as this one sees it.
type Other struct {
	Gateway, Host string
	Seen, Drained int64
	Silent        time.Duration // how long it was watched not to renew its lease
	Ended         bool          // its lease was ended
}

// Sharing tells of the gateways that share the catalog; false where this one has it for itself. Age is the time since all was known
// that others had changed by then.
func (c *Catalog) Sharing() (Sharing, bool) {
	m := c.members
	if m == nil {
		return Sharing{}, false
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Sharing{Gateway: m.id, Lease: m.holds(now), Seen: m.seen, Latest: m.latest, Age: passed(m.known, now)}
	for _, w := range m.others {
		s.Others = append(s.Others, Other{Gateway: w.id, Host: w.host, Seen: w.seen, Drained: w.drained, Silent: now.Sub(w.since), Ended: w.ended})
	}
	slices.SortFunc(s.Others, func(a, b Other) int { return cmp.Compare(a.Gateway, b.Gateway) })
	return s, true
}
