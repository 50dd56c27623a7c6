package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// lastTableKey holds the greatest table id ever given, as an int64 document field: ids are never used twice.
var lastTableKey = []byte{kindStore, 't'}

// tableRecord is a table as the registry stores it.
type tableRecord struct {
	id        uint32
	name      Name
	uuid      [16]byte
	options   bson.Document
	dropping  bool
	nextIndex uint16 // number of the next index
	indexes   []indexRecord
}

// indexRecord is an index as the registry stores it.
type indexRecord struct {
	number uint16
	state  indexState
	spec   bson.Document
}

func (r *tableRecord) append(dst []byte) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = bsoncore.AppendStringElement(dst, "db", r.name.Database)
	dst = bsoncore.AppendStringElement(dst, "coll", r.name.Collection)
	dst = bsoncore.AppendBinaryElement(dst, "uuid", 4, r.uuid[:])
	dst = bsoncore.AppendDocumentElement(dst, "options", r.options)
	dst = bsoncore.AppendBooleanElement(dst, "dropping", r.dropping)
	dst = bsoncore.AppendInt32Element(dst, "nextIndex", int32(r.nextIndex))
	list, dst := bsoncore.AppendArrayElementStart(dst, "indexes")
	for i, ix := range r.indexes {
		one, d := bsoncore.AppendDocumentElementStart(dst, fmt.Sprint(i))
		d = bsoncore.AppendInt32Element(d, "number", int32(ix.number))
		d = bsoncore.AppendInt32Element(d, "state", int32(ix.state))
		d = bsoncore.AppendDocumentElement(d, "spec", ix.spec)
		dst, _ = bsoncore.AppendDocumentEnd(d, one)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, list)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func readTableRecord(id uint32, doc bson.Document) (tableRecord, error) {
	r := tableRecord{id: id}
	if err := bson.Validate(doc, bson.MaxDepth); err != nil {
		return r, fmt.Errorf("read record of table %d: %w", id, err)
	}
	doc = append(bson.Document(nil), doc...)
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "db":
			r.name.Database, _ = v.StringValueOK()
		case "coll":
			r.name.Collection, _ = v.StringValueOK()
		case "uuid":
			if _, b, ok := v.BinaryOK(); ok {
				copy(r.uuid[:], b)
			}
		case "options":
			r.options = v.Data
		case "dropping":
			r.dropping, _ = v.BooleanOK()
		case "nextIndex":
			n, _ := v.Int32OK()
			r.nextIndex = uint16(n)
		case "indexes":
			each := bson.Elements(v.Data)
			for each.Next() {
				r.indexes = append(r.indexes, readIndexRecord(each.Value().Data))
			}
		}
	}
	return r, nil
}

func readIndexRecord(doc []byte) indexRecord {
	var r indexRecord
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		n, _ := v.Int32OK()
		switch string(it.Key()) {
		case "number":
			r.number = uint16(n)
		case "state":
			r.state = indexState(n)
		case "spec":
			r.spec = v.Data
		}
	}
	return r
}

// record returns the table's record with other indexes.
func (t *Table) record(indexes []*index) *tableRecord {
	r := &tableRecord{id: t.id, name: t.Name(), uuid: t.uuid, options: t.options, nextIndex: t.nextIndex}
	for _, ix := range indexes {
		r.indexes = append(r.indexes, indexRecord{number: ix.number, state: ix.state, spec: ix.Spec})
	}
	return r
}

// put adds the record to a batch.
func (r *tableRecord) put(b *pebble.Batch) error {
	return b.Set(appendRegistryKey(nil, r.id), r.append(nil), nil)
}

// load reads the registry, the counters and the flags of multikey indexes, and hands cut-short drops to the remover.
func (db *DB) load() error {
	if err := db.loadLastTable(); err != nil {
		return err
	}
	start := []byte{kindRegistry}
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: appendPrefixEnd(nil, start)})
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = db.loadTable(it.Key(), it.Value())
	}
	return errors.Join(err, it.Close())
}

func (db *DB) loadLastTable() error {
	b, closer, err := db.pebble.Get(lastTableKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read last table: %w", err)
	}
	defer closer.Close()
	n, err := readUint32(b)
	db.ddl.lastTable = n
	return err
}

func (db *DB) loadTable(key, value []byte) error {
	id, err := readUint32(key[1:])
	if err != nil {
		return err
	}
	r, err := readTableRecord(id, value)
	if err != nil {
		return err
	}
	if r.dropping {
		db.removal.add(id)
		return nil
	}
	t, err := db.newTable(&r)
	if err != nil {
		return err
	}
	if err := t.loadCounters(); err != nil {
		return err
	}
	if err := t.loadArrays(); err != nil {
		return err
	}
	// Compactions are running and ask for the borders between tables.
	db.registry.Lock()
	defer db.registry.Unlock()
	db.registry.tables[r.name] = t
	return nil
}

// newTable makes the handle of a record.
func (db *DB) newTable(r *tableRecord) (*Table, error) {
	t := &Table{db: db, id: r.id, uuid: r.uuid, options: r.options, nextIndex: r.nextIndex}
	t.name.Store(&r.name)
	t.documentPrefix = appendDocumentPrefix(nil, r.id)
	t.documentEnd = appendPrefixEnd(nil, t.documentPrefix)
	var indexes []*index
	for _, s := range r.indexes {
		ix, err := t.newIndex(s)
		if err != nil {
			return nil, fmt.Errorf("read index of %s: %w", r.name, err)
		}
		indexes = append(indexes, ix)
	}
	t.version.Store(newVersion(indexes))
	return t, nil
}

func (t *Table) loadCounters() error {
	b, closer, err := t.db.pebble.Get(appendCounterKey(nil, t.id))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read counters of %s: %w", t.Name(), err)
	}
	defer closer.Close()
	c, err := readCounters(b)
	t.documents.Store(c.documents)
	t.bytes.Store(c.bytes)
	return err
}

// loadArrays reads which fields of which indexes have met arrays.
func (t *Table) loadArrays() error {
	prefix := appendPartPrefix(nil, t.id, partArrays)
	it, err := t.db.pebble.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: appendPrefixEnd(nil, prefix)})
	if err != nil {
		return fmt.Errorf("read array flags of %s: %w", t.Name(), err)
	}
	for it.First(); it.Valid(); it.Next() {
		number, bit, ok := readArraysKey(it.Key())
		if !ok {
			continue
		}
		for _, ix := range t.version.Load().indexes {
			if ix.number == number {
				ix.flags.arrays.Or(1 << bit)
				ix.flags.stored.Or(1 << bit)
			}
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// checkName applies MongoDB's rules for names (https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions).
func checkName(n Name) error {
	switch {
	case n.Database == "" || len(n.Database) > 63 || strings.ContainsAny(n.Database, "/\\. \"$*<>:|?\x00"):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid database name: '%s'", n.Database)
	case n.Collection == "" || strings.ContainsAny(n.Collection, "$\x00") || n.Collection[0] == '.' || n.Collection[len(n.Collection)-1] == '.':
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: %s", n.Collection)
	case len(n.Database)+1+len(n.Collection) > 255:
		return mongoerr.New(mongoerr.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s Max: 255", n)
	}
	return nil
}
