package config

import (
	"cmp"
	"time"

	"github.com/goccy/go-yaml/ast"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// Reading says where reads go that don't say it themselves, and what they wait for there.
type Reading struct {
	Preference bson.Document // as $readPreference; nil: the primary
	Reads      Reads
}

// Reads is what a session's reads wait for on a member that is behind.
type Reads uint8

// ReadsDefault leaves it to drivers, who ask for it themselves where they hear the deployment's times: with several deployments they don't, and it is
// ReadsCausal then. ReadsAny waits for nothing, ReadsOwnWrites for the session's last write, ReadsCausal for all that the session has seen.
const (
	ReadsDefault Reads = iota
	ReadsAny
	ReadsOwnWrites
	ReadsCausal
)

// leastStaleness is the smallest maxStaleness that MongoDB takes (https://www.mongodb.com/docs/manual/core/read-preference-staleness/).
const leastStaleness = 90 * time.Second

// Reading returns how a collection's reads are sent, with a layout or plain: each key as the collection's entry says, else its database's, else the one for
// all.
func (c *Config) Reading(database, collection string) Reading {
	var r Reading
	if len(c.readings) > 0 {
		of, in, rest := c.readings[database+"."+collection], c.readings[database], c.readings["*"]
		for _, level := range [...]Reading{of, in, rest} {
			if r.Preference == nil {
				r.Preference = level.Preference
			}
			r.Reads = cmp.Or(r.Reads, level.Reads)
		}
	}
	r.Reads = cmp.Or(r.Reads, c.Reads)
	return r
}

// Waits reports whether any read may have to wait for what its session has done.
func (c *Config) Waits() bool {
	for _, r := range c.readings {
		if r.Reads >= ReadsOwnWrites {
			return true
		}
	}
	return c.Reads >= ReadsOwnWrites
}

var modes = []string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

// readReads reads the key for all collections.
func (cfg *Config) readReads(m *mapping) {
	at := m.valueOf("reads")
	cfg.Reads = m.reads()
	for i := range cfg.Backends {
		if cfg.Backends[i].Embedded == nil {
			return
		}
	}
	if cfg.Reads != ReadsDefault {
		m.add(at, "reads", noSecondaries)
	}
}

const noSecondaries = "has no meaning on an embedded backend: it has no secondaries, and every read sees all writes that were acknowledged before it"

// reads returns the value of the key reads.
func (m *mapping) reads() Reads {
	return Reads(m.choice("reads", -1, "any", "own-writes", "causal") + 1)
}

// readReading reads the keys of an entry, of which the documents lie on some backends, and keeps them under a name.
func (cfg *Config) readReading(m *mapping, name string, backends []string) {
	r := Reading{Reads: m.reads()}
	if n := m.take("read"); n != nil {
		r.Preference = readPreference(m.report, n, m.child("read"))
	}
	if !m.has("read") && !m.has("reads") {
		return
	}
	remote := false
	for _, b := range backends {
		known := cfg.Backend(b)
		remote = remote || known == nil || known.Embedded == nil // one that is not known has its own error
	}
	for _, key := range []string{"read", "reads"} {
		if !remote && m.has(key) {
			m.add(m.valueOf(key), m.child(key), noSecondaries)
		}
	}
	if cfg.readings == nil {
		cfg.readings = map[string]Reading{}
	}
	cfg.readings[name] = r
}

// readPreference reads {mode, maxStaleness, tags} as the document that commands carry.
func readPreference(r *report, n ast.Node, path string) bson.Document {
	m := openMapping(r, n, path)
	if !m.has("mode") {
		r.add(n, path, "needs mode")
	}
	mode := modes[m.choice("mode", 0, modes...)]
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "mode", mode)
	if tags := m.take("tags"); tags != nil {
		dst = bsoncore.AppendArrayElement(dst, "tags", m.tags(tags))
	}
	if most, n := m.duration("maxStaleness"); n != nil {
		if most < leastStaleness {
			m.add(n, m.child("maxStaleness"), "must be 90s at least: less can't be told of a replica set")
		}
		dst = bsoncore.AppendInt64Element(dst, "maxStalenessSeconds", int64(most/time.Second))
	}
	for _, key := range []string{"tags", "maxStaleness"} {
		if mode == "primary" && m.has(key) {
			m.add(m.valueOf(key), m.child(key), "can't be asked of the primary")
		}
	}
	m.close("mode", "maxStaleness", "tags")
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// tags reads a list of sets of tags, tried in its order; the empty set is any member.
func (m *mapping) tags(n ast.Node) bson.Array {
	list := bsoncore.NewArrayBuilder()
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		m.add(n, m.child("tags"), "must be a list of sets, as [{dc: east}, {}]")
		return list.Build()
	}
	for _, v := range seq.Values {
		set := openMapping(m.report, v, m.child("tags"))
		at, dst := bsoncore.AppendDocumentStart(nil)
		for _, e := range set.entries {
			value, ok := scalar(e.value)
			if !ok {
				m.add(e.value, set.child(e.key), "must be a text")
			}
			dst = bsoncore.AppendStringElement(dst, e.key, value)
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		list.AppendDocument(dst)
	}
	return list.Build()
}

// OwnWrites reports whether a session's reads see its own writes on every member.
func (r Reading) OwnWrites() bool { return r.Reads == ReadsOwnWrites }

// Causal reports whether a session's reads see all that it has seen before. single says that there is one deployment, whose times clients hear of.
func (r Reading) Causal(single bool) bool {
	return r.Reads == ReadsCausal || r.Reads == ReadsDefault && !single
}
