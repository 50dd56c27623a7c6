package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// The collections of the catalog's database.
const (
	collectionsStored = "collections"
	partitionsStored  = "partitions"
)

// errLost says that a stored document is not the one any more from which another was made: somebody else's change came first. Whoever loses
// reloads and decides again.
var errLost = errors.New("another change of the catalog came first")

// store keeps records in the catalog's database. Every change is made of the version that was read: its change counter stands in the filter.
type store struct {
	on       deployment
	database string
	members  *membership // nil: this gateway alone uses the catalog
}

// stored are all records, as one reading found them.
type stored struct {
	records    map[string]*record // by namespace
	partitions map[string][]route.Partition
}

// load reads all records. Those of collections come first: a partition that is being made has one of its own after its collection's speaks of it, so
// that one of which the collection's does not speak came later than anything that was announced before.
func (s store) load(ctx context.Context) (*stored, error) {
	docs, err := s.all(ctx, collectionsStored)
	if err != nil {
		return nil, err
	}
	l := &stored{records: map[string]*record{}, partitions: map[string][]route.Partition{}}
	for _, doc := range docs {
		r, err := parseRecord(doc)
		if err != nil {
			return nil, err
		}
		l.records[r.namespace] = r
	}
	if docs, err = s.all(ctx, partitionsStored); err != nil {
		return nil, err
	}
	for _, doc := range docs {
		ns, p, err := parsePartition(doc)
		if err != nil {
			return nil, err
		}
		if l.records[ns].sanctions(p) {
			l.partitions[ns] = append(l.partitions[ns], p)
		}
	}
	for ns, r := range l.records {
		l.partitions[ns] = append(l.partitions[ns], without(r.making, l.partitions[ns])...)
	}
	return l, nil
}

// sanctions reports whether a stored partition counts: one that is being made does if the record speaks of it. Otherwise it was stored by a gateway that
// had stood still for so long that others had finished, and perhaps undone, what it was about.
func (r *record) sanctions(p route.Partition) bool {
	return p.State != route.Creating || r == nil || r.change == 0 ||
		slices.ContainsFunc(r.making, func(m route.Partition) bool { return partitionID(m) == partitionID(p) })
}

// record reads the record of one collection; an unstored one if there is none.
func (s store) record(ctx context.Context, ns string) (*record, error) {
	docs, err := s.find(ctx, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "find", collectionsStored)
		at, dst := bsoncore.AppendDocumentElementStart(dst, "filter")
		dst = bsoncore.AppendStringElement(dst, "_id", ns)
		return ended(dst, at)
	})
	switch {
	case err != nil:
		return nil, err
	case len(docs) == 0:
		return newRecord(ns), nil
	}
	return parseRecord(docs[0])
}

func (s store) all(ctx context.Context, collection string) ([]bson.Document, error) {
	return s.find(ctx, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "find", collection) })
}

// find reads documents of a catalog on a server as a majority of its members has them: what a change of primary can take back is not there yet. A server
// that is configured not to know, as those with arbiters often are, gives what its primary has.
func (s store) find(ctx context.Context, fields func([]byte) []byte) ([]bson.Document, error) {
	committed := fields
	if s.members != nil {
		committed = func(dst []byte) []byte {
			at, dst := bsoncore.AppendDocumentElementStart(fields(dst), "readConcern")
			dst = bsoncore.AppendStringElement(dst, "level", "majority")
			return ended(dst, at)
		}
	}
	docs, err := s.on.read(ctx, s.database, committed)
	if mongoerr.Is(err, mongoerr.ReadConcernMajorityNotEnabled) {
		docs, err = s.on.read(ctx, s.database, fields)
	}
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	return docs, nil
}

// swapRecord stores a record that was made from the stored version of its change, and returns it as it is stored now.
func (s store) swapRecord(ctx context.Context, r record) (*record, error) {
	was := r.change
	r.change, r.by = max(0, was)+1, s.members.self()
	return &r, s.swap(ctx, collectionsStored, []version{{was, r.document()}})
}

// swapPartitions stores partitions that were made from the stored versions of their changes, in two commands at most, and returns them as they are
// stored now. With errLost some of them may be stored.
func (s store) swapPartitions(ctx context.Context, namespace string, partitions []route.Partition) ([]route.Partition, error) {
	changed := slices.Clone(partitions)
	versions := make([]version, len(partitions))
	for i := range changed {
		p := &changed[i]
		was := p.Change
		p.Change, p.By = max(0, was)+1, s.members.self()
		versions[i] = version{was, partitionDocument(namespace, *p)}
	}
	return changed, s.swap(ctx, partitionsStored, versions)
}

// version is a document as it is to be stored, and the change of the one that it was made from.
type version struct {
	was int64 // unstored: there was none
	doc bson.Document
}

// swap inserts and replaces documents; errLost if one was not as it is known.
func (s store) swap(ctx context.Context, collection string, versions []version) error {
	var fresh, statements []bson.Document
	for _, v := range versions {
		if v.was == unstored {
			fresh = append(fresh, v.doc)
			continue
		}
		id, _ := bson.Get(v.doc, "_id")
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = appendVersionFilter(dst, id, v.was)
		dst = bsoncore.AppendDocumentElement(dst, "u", v.doc)
		statements = append(statements, ended(dst, at))
	}
	if err := s.insert(ctx, collection, fresh); mongoerr.Is(err, mongoerr.DuplicateKey) {
		return errLost
	} else if err != nil {
		return err
	}
	n, err := s.write(ctx, "update", collection, "updates", statements)
	if err == nil && n < int64(len(statements)) {
		err = errLost
	}
	return err
}

// insert adds documents; those behind one that is there already, too.
func (s store) insert(ctx context.Context, collection string, docs []bson.Document) error {
	_, err := s.write(ctx, "insert", collection, "documents", docs)
	return err
}

// write runs a write command without order and returns its n.
func (s store) write(ctx context.Context, command, collection, field string, statements []bson.Document) (int64, error) {
	if len(statements) == 0 {
		return 0, nil
	}
	if err := s.members.check(); err != nil {
		return 0, err
	}
	reply, err := s.on.command(ctx, s.database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, command, collection)
		dst = bsoncore.AppendBooleanElement(dst, "ordered", false)
		return durable(appendDocuments(dst, field, statements))
	})
	if err != nil {
		return 0, fmt.Errorf("write the catalog: %w", err)
	}
	n, _ := bson.Get(reply, "n")
	count, _ := n.AsInt64OK()
	return count, nil
}

// deletePartitions forgets partitions; errLost if somebody else has changed, or forgotten, one that is stored.
func (s store) deletePartitions(ctx context.Context, partitions []route.Partition) error {
	var ids []string
	var was []int64
	for _, p := range partitions {
		if p.Change != unstored {
			ids, was = append(ids, partitionID(p)), append(was, p.Change)
		}
	}
	n, err := s.delete(ctx, partitionsStored, ids, was)
	if err == nil && n < int64(len(ids)) {
		err = errLost
	}
	return err
}

// delete removes documents by their _id and, where was is not nil, their change, in one command, and returns how many there were.
func (s store) delete(ctx context.Context, collection string, ids []string, was []int64) (int64, error) {
	statements := make([]bson.Document, len(ids))
	for i, text := range ids {
		id := bson.Value{Type: bson.TypeString, Data: bsoncore.AppendString(nil, text)}
		at, dst := bsoncore.AppendDocumentStart(nil)
		if was != nil {
			dst = appendVersionFilter(dst, id, was[i])
		} else {
			dst = appendFilterByID(dst, id)
		}
		dst = bsoncore.AppendInt32Element(dst, "limit", 1)
		statements[i] = ended(dst, at)
	}
	return s.write(ctx, "delete", collection, "deletes", statements)
}

func appendFilterByID(dst []byte, id bson.Value) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "q")
	dst = bsoncore.AppendValueElement(dst, "_id", id)
	return ended(dst, at)
}

// appendVersionFilter matches a document while its change is the one that is known; none at all is 0.
func appendVersionFilter(dst []byte, id bson.Value, change int64) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "q")
	dst = bsoncore.AppendValueElement(dst, "_id", id)
	if change == 0 {
		dst = bsoncore.AppendNullElement(dst, "change")
	} else {
		dst = bsoncore.AppendInt64Element(dst, "change", change)
	}
	return ended(dst, at)
}

// ended closes the document that was begun at an index; of one that was, there is no error.
func ended(dst []byte, at int32) []byte {
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
