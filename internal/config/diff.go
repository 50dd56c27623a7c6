package config

import (
	"errors"
	"fmt"
)

// Diff says why a running gateway can't go from one configuration to another, or nil. made tells whether a collection has partitions:
// then its fields, units, kinds of layout and hash count stay, and so does its entry, since documents would become unroutable. every, zone, as, over
// and name apply to partitions made from now on; keep, hold, ahead, late, fanout and ordered at once. Backends stay as they are.
func Diff(from, to *Config, made func(namespace string) bool) error {
	var reasons []error
	for i := range from.Backends {
		old := &from.Backends[i]
		switch now := to.Backend(old.Name); {
		case now == nil:
			reasons = append(reasons, fmt.Errorf("backends.%s: a backend can't be removed while the gateway runs", old.Name))
		case !old.same(now):
			reasons = append(reasons, fmt.Errorf("backends.%s: a backend can't change while the gateway runs", old.Name))
		}
	}
	for i := range to.Backends {
		if name := to.Backends[i].Name; from.Backend(name) == nil {
			reasons = append(reasons, fmt.Errorf("backends.%s: a backend can't be added while the gateway runs", name))
		}
	}
	if from.Default != to.Default {
		reasons = append(reasons, fmt.Errorf("databases.*: the default backend holds the catalog and can't change from %s to %s", from.Default, to.Default))
	}
	if from.CatalogDatabase() != to.CatalogDatabase() {
		reasons = append(reasons, fmt.Errorf("catalog: its database can't change from %s to %s while the gateway runs", from.CatalogDatabase(), to.CatalogDatabase()))
	}
	if from.Lease != to.Lease || from.Longest != to.Longest {
		reasons = append(reasons, fmt.Errorf("lease, longest: they can't change while the gateway runs"))
	}
	if from.Listen != to.Listen {
		reasons = append(reasons, fmt.Errorf("listen: the address can't change while the gateway runs"))
	}
	if from.Memory != to.Memory {
		reasons = append(reasons, fmt.Errorf("memory: it can't change while the gateway runs"))
	}
	if from.Slow != to.Slow {
		reasons = append(reasons, fmt.Errorf("slow: it can't change while the gateway runs"))
	}
	if from.KillAbandoned != to.KillAbandoned {
		reasons = append(reasons, fmt.Errorf("abandoned: it can't change while the gateway runs"))
	}
	if from.Authorize != to.Authorize {
		reasons = append(reasons, fmt.Errorf("auth: it can't change while the gateway runs; without the key it is on where users are named"))
	}
	if (from.HTTP == nil) != (to.HTTP == nil) || from.HTTP != nil && *from.HTTP != *to.HTTP {
		reasons = append(reasons, fmt.Errorf("http: it can't change while the gateway runs"))
	}
	if (from.TLS == nil) != (to.TLS == nil) || from.TLS != nil && *from.TLS != *to.TLS {
		reasons = append(reasons, fmt.Errorf("tls: it can't change while the gateway runs"))
	}
	for i := range from.Collections {
		c := &from.Collections[i]
		if !made(c.Namespace()) {
			continue
		}
		if err := c.Change(to.Collection(c.Namespace())); err != nil {
			reasons = append(reasons, err)
		}
	}
	return errors.Join(reasons...)
}

func (b *Backend) same(o *Backend) bool {
	if b.Embedded == nil || o.Embedded == nil {
		return b.Embedded == o.Embedded && b.URI == o.URI
	}
	return *b.Embedded == *o.Embedded
}

// Change says why a collection that has partitions can't get another entry, nil for none, or nil.
func (c *Collection) Change(to *Collection) error {
	refuse := func(key, format string, args ...any) error {
		return fmt.Errorf("collections.%s%s: %s, since documents that are stored could not be found", c.Namespace(), key, fmt.Sprintf(format, args...))
	}
	if to == nil {
		return refuse("", "the entry can't be removed while partitions exist")
	}
	from, now := c.Layout, to.Layout
	switch {
	case (from.Time == nil) != (now.Time == nil):
		return refuse(".time", "a time layout can't be added or removed while partitions exist")
	case (from.Hash == nil) != (now.Hash == nil):
		return refuse(".hash", "a hash layout can't be added or removed while partitions exist")
	}
	if from.Time != nil {
		if a, b := from.Time.Field.String(), now.Time.Field.String(); a != b {
			return refuse(".time.field", "it can't change from %s to %s while partitions exist", a, b)
		}
		if a, b := from.Time.Unit, now.Time.Unit; a != b {
			return refuse(".time.unit", "it can't change from %s to %s while partitions exist", a, b)
		}
	}
	if from.Hash != nil {
		if a, b := from.Hash.Field.String(), now.Hash.Field.String(); a != b {
			return refuse(".hash.field", "it can't change from %s to %s while partitions exist", a, b)
		}
		if a, b := from.Hash.Count, now.Hash.Count; a != b {
			return refuse(".hash.count", "it can't change from %d to %d while partitions exist", a, b)
		}
	}
	return nil
}
