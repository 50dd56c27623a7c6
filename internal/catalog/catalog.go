package catalog

import (
	"context"
	"log/slog"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// Database is the name of the database, on the default backend, that holds the catalog. Closed to clients.
const Database = "oxbow"

// Catalog is the live catalog.
type Catalog struct{}

// Options are what Open needs.
type Options struct {
	Config   *config.Config
	Backends map[string]backend.Backend // by the configuration's names; the catalog closes none
	Log      *slog.Logger
	Now      func() time.Time
}

// Open loads the catalog, finishes or undoes what a crash cut short, and publishes the first snapshot. The
// configuration must not contradict the partitions that exist: see Reload.
func Open(ctx context.Context, opts Options) (*Catalog, error) { panic("unbuilt") }

// Snapshot is the catalog at one moment. Immutable.
type Snapshot struct {
	Version     int64
	collections map[string]*Collection
	config      *config.Config
}

// Collection returns the collection with a layout under a logical namespace "db.coll", or nil: then the namespace is plain.
func (s *Snapshot) Collection(ns string) *Collection { return s.collections[ns] }

// Collections returns all collections with a layout of a database ("": of all), by name.
func (s *Snapshot) Collections(database string) []*Collection { panic("unbuilt") }

// Physical returns the collection and partition that a physical namespace belongs to, or nil, nil: those are hidden from listings and read-only.
func (s *Snapshot) Physical(backend, database, collection string) (*Collection, *route.Partition) {
	panic("unbuilt")
}

// BackendFor returns the name of the backend that serves a plain database.
func (s *Snapshot) BackendFor(database string) string { return s.config.BackendFor(database) }

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

// Namespace returns "database.collection".
func (c *Collection) Namespace() string { return c.Database + "." + c.Name }

// Snapshot returns the current snapshot: a pointer load.
func (c *Catalog) Snapshot() *Snapshot { panic("unbuilt") }

// Ensure makes the partitions of the given places of a collection (all slots of a time range at once) and returns a snapshot that has them.
// Concurrent calls for one range make it once. It creates the collection if need be.
func (c *Catalog) Ensure(ctx context.Context, ns string, places []route.Place) (*Snapshot, error) {
	panic("unbuilt")
}

// BackendFor returns the name of the backend that serves a plain database.
func (c *Catalog) BackendFor(database string) string { return c.Snapshot().BackendFor(database) }

// Create records a collection as created, with the options of the create command; of a collection with a hash layout only, its partitions
// are made. NamespaceExists if it is there with other options.
func (c *Catalog) Create(ctx context.Context, ns string, options bson.Document) (*Snapshot, error) {
	panic("unbuilt")
}

// Target is what became of an index command on one partition.
type Target struct {
	Partition route.Partition
	Err       error
}

// CreateIndexes adds indexes to a collection: first to its list, so that partitions made from now on have them, then to every partition.
// A specification that MongoDB would refuse, or a unique index that lacks a field of the layout (CannotCreateIndex), is refused before anything
// is stored. created counts indexes that were not in the list. When targets fail the list keeps the indexes; the same command again resumes.
func (c *Catalog) CreateIndexes(ctx context.Context, ns string, specs []bson.Document) (created int, targets []Target, err error) {
	panic("unbuilt")
}

// DropIndexes drops the indexes that the index argument of a dropIndexes command names: a name, an array of names, a key document, or "*".
func (c *Catalog) DropIndexes(ctx context.Context, ns string, index bson.Value) (targets []Target, err error) {
	panic("unbuilt")
}

// Drop drops a collection at once: every partition, its indexes and options. It reports whether there was one.
func (c *Catalog) Drop(ctx context.Context, ns string) (bool, error) { panic("unbuilt") }

// DropDatabase drops the collections with a layout of a database. Plain collections are the caller's business.
func (c *Catalog) DropDatabase(ctx context.Context, database string) error { panic("unbuilt") }

// Hide takes an Active partition out of routing. name is route.Partition.Name().
func (c *Catalog) Hide(ctx context.Context, ns, name string) error { panic("unbuilt") }

// Undo brings a Hidden partition back.
func (c *Catalog) Undo(ctx context.Context, ns, name string) error { panic("unbuilt") }

// DropPartition drops a partition for good, whatever its state.
func (c *Catalog) DropPartition(ctx context.Context, ns, name string) error { panic("unbuilt") }

// Reload applies another configuration, or refuses it whole with the reasons: see config.Diff.
func (c *Catalog) Reload(ctx context.Context, cfg *config.Config) error { panic("unbuilt") }

// Stray returns the physical collections that match a template but that the catalog does not know, as found by Open.
func (c *Catalog) Stray() []backend.Namespace { panic("unbuilt") }
