package engine

import (
	"context"
	"sync/atomic"

	"oxbow/internal/bson"
)

// Name is a table's name: a database and a collection.
type Name struct {
	Database   string
	Collection string
}

// String returns "database.collection".
func (n Name) String() string { return n.Database + "." + n.Collection }

// Table is one table of documents. It stays usable as a handle after a drop: operations then fail with NamespaceNotFound or QueryPlanKilled.
type Table struct {
	db      *DB
	id      uint32 // never used twice
	uuid    [16]byte
	name    atomic.Pointer[Name]
	options bson.Document
	version atomic.Pointer[version]

	documentPrefix []byte
	documentEnd    []byte
	nextIndex      uint16 // under db.ddl
	greatest       greatest

	documents atomic.Int64 // the counters on disk, with every batch that is visible
	bytes     atomic.Int64
}

// CreateTable makes a table; NamespaceExists if there is one with other options, InvalidNamespace for a bad name. options are those of the create command that are
// kept for listCollections.
func (db *DB) CreateTable(name Name, options bson.Document) (*Table, error) { panic("unbuilt") }

// Table returns an existing table.
func (db *DB) Table(name Name) (*Table, bool) { panic("unbuilt") }

// Tables returns the tables of a database, or of all with "", in order of name.
func (db *DB) Tables(database string) []*Table { panic("unbuilt") }

// DropTable removes a table at a cost that does not depend on its size; NamespaceNotFound if there is none. Cursors on it fail with QueryPlanKilled.
func (db *DB) DropTable(name Name) error { panic("unbuilt") }

// RenameTable moves a table; with dropTarget an existing target is dropped in the same step.
func (db *DB) RenameTable(from, to Name, dropTarget bool) error { panic("unbuilt") }

// Name returns the table's name.
func (t *Table) Name() Name { return *t.name.Load() }

// UUID identifies this table among all that ever had its name.
func (t *Table) UUID() [16]byte { return t.uuid }

// Options returns what CreateTable was given.
func (t *Table) Options() bson.Document { panic("unbuilt") }

// TableStats are one table's figures.
type TableStats struct {
	Documents  int64            // exact, from a counter
	DataBytes  int64            // BSON bytes of the documents, exact, from a counter
	DiskBytes  int64            // estimate of what its documents take on disk
	IndexBytes map[string]int64 // estimate by index name
}

// Stats reads the table's figures without scanning.
func (t *Table) Stats() (TableStats, error) { panic("unbuilt") }

// Index describes one index.
type Index struct {
	Name     string
	Keys     []IndexKey
	Unique   bool
	Sparse   bool
	Hidden   bool
	Partial  bson.Document // partialFilterExpression or nil
	Multikey bool          // some document has an array under one of the keys
	Spec     bson.Document // as createIndexes gave it, with v: 2, for listIndexes; expireAfterSeconds among it
}

// IndexKey is one path of an index.
type IndexKey struct {
	Path bson.Path
	Desc bool
}

// Indexes returns the table's indexes, _id_ first.
func (t *Table) Indexes() []Index { panic("unbuilt") }

// CreateIndexes builds the indexes that are not there yet, from specifications as createIndexes has them (key, name, unique, sparse, partialFilterExpression,
// hidden, expireAfterSeconds kept but not acted on). Same name with other keys is IndexKeySpecsConflict, same keys with other options
// IndexOptionsConflict; a duplicate under a unique one DuplicateKey; and then none of them is there. Writers go on during the build. The table is created when missing.
func (db *DB) CreateIndexes(ctx context.Context, name Name, specs []bson.Document) (before, after int, err error) {
	panic("unbuilt")
}

// DropIndexes removes indexes by name; "*" means all but _id_. IndexNotFound names the missing one; then none is removed.
func (db *DB) DropIndexes(name Name, indexes []string) (before int, err error) { panic("unbuilt") }

// Validate checks indexes against documents and counters against a scan, and returns what it found wrong.
func (t *Table) Validate(ctx context.Context) (ValidateResult, error) { panic("unbuilt") }

// ValidateResult is what Validate saw.
type ValidateResult struct {
	Documents    int64
	KeysPerIndex map[string]int64
	Errors       []string
}
