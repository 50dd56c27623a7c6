package config

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/goccy/go-yaml/ast"

	"oxbow/internal/bson"
	"oxbow/internal/route"
)

// Limits of a layout.
const (
	maxSlots = 1024
	maxAhead = 1000
)

func (cfg *Config) readCollections(m *mapping) {
	list := openMapping(m.report, m.take("collections"), "collections")
	var at []ast.Node
	for _, e := range list.entries {
		if c, ok := cfg.readCollection(m.report, e, list.child(e.key)); ok {
			cfg.Collections = append(cfg.Collections, c)
			at = append(at, e.at)
		}
	}
	for i := range cfg.Collections {
		for j := range i {
			if why := cfg.Collections[i].meets(&cfg.Collections[j]); why != "" {
				m.add(at[i], list.child(cfg.Collections[i].Namespace()), "%s", why)
			}
		}
	}
}

// readCollection reads one collection; false when it is not fit for comparing with others.
func (cfg *Config) readCollection(r *report, e entry, path string) (Collection, bool) {
	before := len(r.list)
	var (
		c   Collection
		err error
	)
	if c.Database, c.Name, err = splitNamespace(e.key); err == nil && c.Database == cfg.CatalogDatabase() {
		err = fmt.Errorf("a layout can't be in database %q, which is reserved for the catalog", c.Database)
	}
	if err != nil {
		r.add(e.at, path, "%v", err)
	}
	m := openMapping(r, e.value, path)
	if cfg.readPlain(m, e.key, c.Database) {
		return c, false
	}
	if n := m.take("hash"); n != nil {
		c.Layout.Hash = readHash(r, n, m.child("hash"))
	}
	if n := m.take("time"); n != nil {
		c.Layout.Time, c.As = readTime(r, n, m.child("time"))
	}
	if c.Layout.Hash == nil && c.Layout.Time == nil && len(r.list) == before {
		r.add(e.at, path, "has no layout: it needs hash, time, or both")
	}
	cfg.readRetention(&c, m)
	cfg.readOver(&c, m)
	c.Fanout = m.whole("fanout", 1, mostFanout, DefaultWidth)
	c.Ordered = Ordered(m.choice("ordered", int(OrderedCollection), "collection", "partition"))
	cfg.readReading(m, e.key, c.Over)
	cfg.readGuard(m, e.key, c.Over)
	m.refusePlanned("fields", "idTime", "legacy", "order", "move", "gene")
	name, at := m.text("name")
	m.close("time", "hash", "keep", "hold", "ahead", "late", "over", "fanout", "ordered", "read", "reads", "guard", "name")
	if len(r.list) > before {
		return c, false
	}
	if at == nil {
		name, at = defaultTemplate(c.Layout, c.As), e.at
	}
	if c.Template, err = newTemplate(name, c.Database, c.Name, c.Layout, c.As); err == nil {
		err = cfg.checkNames(&c)
	}
	if err != nil {
		r.add(at, m.child("name"), "%v", err)
		return c, false
	}
	return c, true
}

// readPlain reads the entry of a collection without a layout, which says how it is read and guarded and nothing else; false for any other entry.
func (cfg *Config) readPlain(m *mapping, namespace, database string) bool {
	for _, e := range m.entries {
		if e.key != "read" && e.key != "reads" && e.key != "guard" {
			return false
		}
	}
	if len(m.entries) == 0 {
		return false
	}
	backends := []string{cfg.BackendFor(database)}
	cfg.readReading(m, namespace, backends)
	cfg.readGuard(m, namespace, backends)
	return true
}

func readHash(r *report, n ast.Node, path string) *route.Hash {
	m := openMapping(r, n, path)
	h := &route.Hash{Field: m.field(), Count: m.whole("count", 1, maxSlots, 64)}
	m.refusePlanned("gene")
	m.close("field", "count")
	return h
}

func readTime(r *report, n ast.Node, path string) (*route.Time, As) {
	m := openMapping(r, n, path)
	t := &route.Time{Field: m.field(), Zone: time.UTC, Ahead: DefaultAhead}
	t.Unit = route.Unit(m.choice("unit", int(route.Date), route.Date.String(), route.Seconds.String(), route.Milliseconds.String(), route.ObjectID.String()))
	if !m.has("every") {
		r.add(n, path, "needs every: how long a partition is")
	}
	t.Every = route.Every(m.choice("every", int(route.Day), "minute", "hour", "day", "week", "month"))
	if zone, at := m.text("zone"); at != nil {
		// The empty name and Local would be zones of the machine.
		loaded, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			r.add(at, m.child("zone"), "there is no zone %q; zones are named as in the IANA database, such as Asia/Shanghai", zone)
		} else {
			t.Zone = loaded
		}
	}
	as := As(m.choice("as", int(AsCollection), "collection", "database"))
	m.refusePlanned("idTime")
	m.close("field", "unit", "every", "zone", "as")
	return t, as
}

// field returns the path under the key field, which must be there.
func (m *mapping) field() bson.Path {
	text, n := m.text("field")
	if n == nil {
		if !m.has("field") {
			m.add(m.at, m.path, "needs field")
		}
		return bson.Path{}
	}
	if err := checkField(text); err != nil {
		m.add(n, m.child("field"), "%v", err)
		return bson.Path{}
	}
	return bson.ParsePath(text)
}

func (cfg *Config) readRetention(c *Collection, m *mapping) {
	t := c.Layout.Time
	if t == nil {
		t = &route.Time{}
		for _, key := range []string{"keep", "hold", "ahead", "late"} {
			if n := m.take(key); n != nil && !m.has("time") {
				m.add(n, m.child(key), "needs a time layout")
			}
		}
		return
	}
	c.Hold = DefaultHold
	if keep, n := m.duration("keep"); n != nil {
		t.Keep = keep
		if keep < time.Second {
			m.add(n, m.child("keep"), "must be a second at least; leave it out to keep documents for ever")
		}
	}
	at := m.at
	if hold, n := m.duration("hold"); n != nil {
		c.Hold, at = hold, n
	}
	cfg.checkHold(c, m, at)
	t.Ahead = m.whole("ahead", 0, maxAhead, DefaultAhead)
	t.Late = route.Late(m.choice("late", int(route.Reject), "reject", "recreate"))
}

// duration returns the duration of a key's value, and nil when it is absent or wrong.
func (m *mapping) duration(key string) (time.Duration, ast.Node) {
	text, n := m.text(key)
	if n == nil {
		return 0, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		m.add(n, m.child(key), "%v", err)
		return 0, nil
	}
	return d, n
}

func (cfg *Config) readOver(c *Collection, m *mapping) {
	names, nodes := m.texts("over")
	if nodes == nil {
		c.Over = []string{cfg.BackendFor(c.Database)}
		return
	}
	seen := map[string]bool{}
	for i, name := range names {
		switch {
		case cfg.Backend(name) == nil:
			m.add(nodes[i], m.child("over"), "there is no backend %q", name)
		case seen[name]:
			m.add(nodes[i], m.child("over"), "backend %q is there twice", name)
		}
		seen[name] = true
	}
	c.Over = names
}

// checkNames checks the longest names that partitions of a collection can get, with room for a generation.
func (cfg *Config) checkNames(c *Collection) error {
	slots := 1
	if c.Layout.Hash != nil {
		slots = c.Layout.Hash.Count
	}
	most := maxNamespace
	for _, name := range c.Over {
		if b := cfg.Backend(name); b != nil && b.Embedded == nil {
			most = maxRemoteNamespace
		}
	}
	return c.Template.checkLengths(slots, most, c.As)
}
