package engine

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
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
	nextIndex      uint16     // under db.ddl
	building       sync.Mutex // held while indexes of this table are made or dropped
	greatest       greatest

	documents atomic.Int64 // the counters on disk, with every batch that is visible
	bytes     atomic.Int64
}

// CreateTable makes a table; NamespaceExists if there is one with other options, InvalidNamespace for a bad name. options are
// those of the create command that are kept for listCollections. It returns once the table is on disk.
func (db *DB) CreateTable(name Name, options bson.Document) (*Table, error) {
	if err := db.begin(); err != nil {
		return nil, err
	}
	defer db.end()
	t, made, err := db.createTable(name, options, nil)
	if err != nil {
		return nil, err
	}
	if !made && !bytes.Equal(t.Options(), normalOptions(options)) {
		return nil, mongoerr.New(mongoerr.NamespaceExists, "Collection %s already exists.", name)
	}
	return t, db.sync()
}

// createTable makes a table, with indexes that are ready at once, unless there is one of that name. It is not synced: what is written
// into the table stands behind it in the log.
func (db *DB) createTable(name Name, options bson.Document, specs []*indexSpec) (t *Table, made bool, err error) {
	if err := checkName(name); err != nil {
		return nil, false, err
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if t, ok := db.Table(name); ok {
		return t, false, nil
	}
	if db.ddl.lastTable == math.MaxUint32 {
		return nil, false, mongoerr.New(mongoerr.CannotCreateCollection, "no table id is left in this store")
	}
	r := tableRecord{id: db.ddl.lastTable + 1, name: name, options: normalOptions(options), nextIndex: partDocuments + 1}
	if _, err := rand.Read(r.uuid[:]); err != nil {
		return nil, false, fmt.Errorf("make uuid: %w", err)
	}
	r.uuid[6], r.uuid[8] = r.uuid[6]&0x0f|0x40, r.uuid[8]&0x3f|0x80
	for _, s := range specs {
		r.indexes = append(r.indexes, indexRecord{number: r.nextIndex, state: indexReady, spec: s.Spec})
		r.nextIndex++
	}
	if t, err = db.newTable(&r); err != nil {
		return nil, false, err
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	err = errors.Join(b.Set(lastTableKey, binary.BigEndian.AppendUint32(nil, r.id), nil), r.put(b))
	if err == nil {
		err = db.commit(b)
	}
	if err != nil {
		return nil, false, err
	}
	db.ddl.lastTable = r.id
	db.registry.Lock()
	db.registry.tables[name] = t
	db.registry.Unlock()
	return t, true, nil
}

// normalOptions returns a copy of options, an empty document for none.
func normalOptions(options bson.Document) bson.Document {
	if options == nil {
		return bson.Document{5, 0, 0, 0, 0}
	}
	return bytes.Clone(options)
}

// Table returns an existing table.
func (db *DB) Table(name Name) (*Table, bool) {
	db.registry.RLock()
	defer db.registry.RUnlock()
	t, ok := db.registry.tables[name]
	return t, ok
}

// Tables returns the tables of a database, or of all with "", in order of name.
func (db *DB) Tables(database string) []*Table {
	db.registry.RLock()
	var out []*Table
	for name, t := range db.registry.tables {
		if database == "" || name.Database == database {
			out = append(out, t)
		}
	}
	db.registry.RUnlock()
	slices.SortFunc(out, func(a, b *Table) int {
		return cmp.Or(strings.Compare(a.Name().Database, b.Name().Database), strings.Compare(a.Name().Collection, b.Name().Collection))
	})
	return out
}

// RenameTable moves a table; with dropTarget an existing target is dropped in the same step. It returns once that is on disk.
func (db *DB) RenameTable(from, to Name, dropTarget bool) error {
	if err := db.begin(); err != nil {
		return err
	}
	defer db.end()
	if err := checkName(to); err != nil {
		return err
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	t, ok := db.Table(from)
	if !ok {
		return mongoerr.New(mongoerr.NamespaceNotFound, "Source collection %s does not exist", from)
	}
	if from == to {
		return mongoerr.New(mongoerr.IllegalOperation, "Can't rename a collection to itself")
	}
	target, exists := db.Table(to)
	if exists && !dropTarget {
		return mongoerr.New(mongoerr.NamespaceExists, "target namespace exists")
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	r := t.record(t.version.Load().indexes)
	r.name = to
	if err := r.put(b); err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	if exists {
		if err := target.putDropping(b); err != nil {
			return fmt.Errorf("rename %s: %w", from, err)
		}
	}
	if err := db.commit(b); err != nil {
		return err
	}
	if err := db.sync(); err != nil {
		return err
	}
	db.registry.Lock()
	delete(db.registry.tables, from)
	db.registry.tables[to] = t
	t.name.Store(&to)
	db.registry.Unlock()
	if exists {
		target.retire()
	}
	return nil
}

// Name returns the table's name.
func (t *Table) Name() Name { return *t.name.Load() }

// UUID identifies this table among all that ever had its name.
func (t *Table) UUID() [16]byte { return t.uuid }

// Options returns what CreateTable was given.
func (t *Table) Options() bson.Document { return t.options }

// TableStats are one table's figures.
type TableStats struct {
	Documents  int64            // exact, from a counter
	DataBytes  int64            // BSON bytes of the documents, exact, from a counter
	DiskBytes  int64            // estimate of what its documents take on disk
	IndexBytes map[string]int64 // estimate by index name
}

// Stats reads the table's figures without scanning.
func (t *Table) Stats() (TableStats, error) {
	if err := t.db.begin(); err != nil {
		return TableStats{}, err
	}
	defer t.db.end()
	v := t.version.Load()
	if v.dropped {
		return TableStats{}, t.notFound()
	}
	s := TableStats{Documents: t.documents.Load(), DataBytes: t.bytes.Load(), IndexBytes: make(map[string]int64)}
	n, err := t.db.pebble.EstimateDiskUsage(t.documentPrefix, t.documentEnd)
	if err != nil {
		return s, fmt.Errorf("estimate size of %s: %w", t.Name(), err)
	}
	s.DiskBytes = int64(n)
	s.IndexBytes[idIndexName] = 0 // documents lie under their _id
	for _, ix := range v.ready() {
		n, err := t.db.pebble.EstimateDiskUsage(ix.prefix, ix.end)
		if err != nil {
			return s, fmt.Errorf("estimate size of index %s of %s: %w", ix.Name, t.Name(), err)
		}
		s.IndexBytes[ix.Name] = int64(n)
	}
	return s, nil
}

// Index describes one index.
type Index struct {
	Name     string
	Keys     []IndexKey
	Unique   bool
	Sparse   bool
	Hidden   bool
	Partial  bson.Document // partialFilterExpression or nil
	Multikey bool          // some document has an array under one of the keys
	Spec     bson.Document // as createIndexes gave it, with v: 2, for listIndexes
}

// IndexKey is one path of an index.
type IndexKey struct {
	Path bson.Path
	Desc bool
}

// Indexes returns the table's indexes, _id_ first.
func (t *Table) Indexes() []Index {
	out := []Index{idIndex}
	for _, ix := range t.version.Load().ready() {
		one := ix.Index
		one.Multikey = ix.multikey()
		out = append(out, one)
	}
	return out
}
