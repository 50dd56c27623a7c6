package catalog

import (
	"context"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/route"
)

// Catalog is the live catalog.
type Catalog struct{}

// Snapshot is the catalog at one moment. Immutable.
type Snapshot struct {
	Version     int64
	collections map[string]*Collection
}

// Collection returns the collection with a layout under a logical namespace "db.coll", or nil: then the namespace is plain.
func (s *Snapshot) Collection(ns string) *Collection { return s.collections[ns] }

// Collection is one collection with a layout.
type Collection struct {
	Database string
	Name     string
	Created  bool // by create, createIndexes or a first write: an undeclared-yet collection is invisible to listCollections
	Table    route.Table
	All      []route.Partition // of every state
	Indexes  []bson.Document   // specifications, without _id_
	Options  bson.Document     // of create
	Hold     time.Duration
	UUID     [16]byte
}

// Snapshot returns the current snapshot.
func (c *Catalog) Snapshot() *Snapshot { panic("unbuilt") }

// Ensure makes the partitions of the given places of a collection (all slots of a time range at once) and returns a snapshot that has them.
// Concurrent calls for one range make it once.
func (c *Catalog) Ensure(ctx context.Context, ns string, places []route.Place) (*Snapshot, error) {
	panic("unbuilt")
}

// BackendFor returns the name of the backend that serves a plain database.
func (c *Catalog) BackendFor(database string) string { panic("unbuilt") }
