package catalog

import (
	"cmp"
	"slices"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// Snapshot is the catalog at one moment. Immutable.
type Snapshot struct {
	Version     int64
	collections map[string]*Collection
	config      *config.Config
}

// Collection returns the collection with a layout under a logical namespace "db.coll", or nil: then the namespace is plain.
func (s *Snapshot) Collection(ns string) *Collection { return s.collections[ns] }

// Collections returns all collections with a layout of a database ("": of all), by name.
func (s *Snapshot) Collections(database string) []*Collection {
	var list []*Collection
	for _, c := range s.collections {
		if database == "" || c.Database == database {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *Collection) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Physical returns the collection and partition that a physical namespace belongs to, or nil, nil: those are hidden from listings and read-only.
func (s *Snapshot) Physical(backend, database, collection string) (*Collection, *route.Partition) {
	name := database + "." + collection
	for _, c := range s.collections {
		for _, i := range c.byName[name] {
			if c.All[i].Backend == backend {
				return c, &c.All[i]
			}
		}
	}
	return nil, nil
}

// BackendFor returns the name of the backend that serves a plain database.
func (s *Snapshot) BackendFor(database string) string { return s.config.BackendFor(database) }

// Config returns the configuration that the snapshot follows.
func (s *Snapshot) Config() *config.Config { return s.config }

// taken reports whether a physical name belongs to a partition, on whichever backend, or is a collection with a layout.
func (s *Snapshot) taken(database, collection string) bool {
	name := database + "." + collection
	if s.collections[name] != nil {
		return true
	}
	for _, c := range s.collections {
		if len(c.byName[name]) > 0 {
			return true
		}
	}
	return false
}

// Uses reports whether a partition other than those being dropped lies in a physical database.
func (s *Snapshot) Uses(backend, database string) bool {
	for _, c := range s.collections {
		for _, p := range c.All {
			if p.Backend == backend && p.Database == database && p.State != route.Dropping {
				return true
			}
		}
	}
	return false
}

// Collection is one collection with a layout. Immutable.
type Collection struct {
	Database string
	Name     string
	Created  bool // by create, createIndexes or a first write: an undeclared-yet collection is invisible to listCollections
	Table    route.Table
	All      []route.Partition // of every state, in a Table's order
	Indexes  []bson.Document   // specifications, without _id_
	Options  bson.Document     // of create
	Hold     time.Duration
	Fanout   int // partitions that one command is sent to at a time
	UUID     [16]byte

	ByPartition bool // ordered writes keep their order within each partition only

	config *config.Collection
	record *record          // nil only where no catalog made the collection: in tests
	byName map[string][]int // physical namespace → indexes into All

	physical map[place]int // → index into All
}

// Namespace returns "database.collection".
func (c *Collection) Namespace() string {
	if c.record != nil {
		return c.record.namespace // put together once: every statement asks for it
	}
	return c.Database + "." + c.Name
}

// Partition returns the partition with a physical name, or nil.
func (c *Collection) Partition(name string) *route.Partition {
	if at := c.byName[name]; len(at) > 0 {
		return &c.All[at[0]]
	}
	return nil
}

// newCollection puts a collection together. Where its catalog is shared, partitions that are about to become Active are read already; and one that was
// dropped has none, even while its partitions wait to be marked.
func newCollection(cfg *config.Collection, r *record, all []route.Partition, shared bool) *Collection {
	c := &Collection{
		Database: cfg.Database,
		Name:     cfg.Name,
		Created:  r.created,
		Table:    route.Table{Layout: cfg.Layout},
		All:      all,
		Indexes:  r.indexes,
		Options:  r.options,
		Hold:     cfg.Hold,
		Fanout:   cfg.Fanout,
		UUID:     r.uuid,
		config:   cfg,
		record:   r,
		byName:   make(map[string][]int, len(all)),
		physical: make(map[place]int, len(all)),

		ByPartition: cfg.Ordered == config.OrderedPartition,
	}
	route.Sort(all)
	for i, p := range all {
		c.byName[p.Name()] = append(c.byName[p.Name()], i)
		c.physical[place{p.Backend, backend.Namespace{Database: p.Database, Collection: p.Collection}}] = i
		switch {
		case shared && !r.created:
		case shared && (p.State == route.Creating || p.State == route.Returning):
			p.Opening = true
			c.Table.Partitions = append(c.Table.Partitions, p)
		case p.State == route.Active:
			c.Table.Partitions = append(c.Table.Partitions, p)
		}
	}
	return c
}
