package embedded

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (b *Backend) createIndexes(op operation, req *backend.Request) (bson.Document, error) {
	c, err := statement.ParseCreateIndexes(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(c.WriteConcern)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&c.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	name := engine.Name{Database: c.Database, Collection: c.Collection}
	_, existed := b.db.Table(name)
	before, after, err := b.db.CreateIndexes(op, name, c.Indexes)
	if err != nil {
		return nil, err
	}
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "numIndexesBefore", int32(before))
		dst = bsoncore.AppendInt32Element(dst, "numIndexesAfter", int32(after))
		if before == after {
			dst = bsoncore.AppendStringElement(dst, "note", "all indexes already exist")
		} else {
			dst = bsoncore.AppendBooleanElement(dst, "createdCollectionAutomatically", !existed)
		}
		return withConcern(concern)(dst)
	}), nil
}

func (b *Backend) dropIndexes(_ operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDropIndexes(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(d.WriteConcern)
	if err != nil {
		return nil, err
	}
	name := engine.Name{Database: d.Database, Collection: d.Collection}
	table, exists := b.db.Table(name)
	if !exists {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found %s", namespace(name))
	}
	names, err := indexNames(table, d.Index)
	if err != nil {
		return nil, err
	}
	before, err := b.db.DropIndexes(name, names)
	if err != nil {
		return nil, err
	}
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "nIndexesWas", int32(before))
		if len(names) == 1 && names[0] == "*" {
			dst = bsoncore.AppendStringElement(dst, "msg", "non-_id indexes dropped for collection")
		}
		return withConcern(concern)(dst)
	}), nil
}

// indexNames turns the argument of dropIndexes into names: it is a name, "*", an array of names, or a key pattern.
func indexNames(table *engine.Table, index bson.Value) ([]string, error) {
	switch index.Type {
	case bson.TypeString:
		return []string{index.StringValue()}, nil
	case bson.TypeArray:
		var names []string
		it := bson.Elements(index.Data)
		for it.Next() {
			name, ok := it.Value().StringValueOK()
			if !ok {
				return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'dropIndexes.index.%s' is the wrong type '%s', expected type 'string'",
					it.Key(), bson.TypeName(it.Value().Type))
			}
			names = append(names, name)
		}
		return names, nil
	}
	for _, x := range table.Indexes() {
		if key, ok := bson.Get(x.Spec, "key"); ok && bson.Compare(key, index) == 0 {
			return []string{x.Name}, nil
		}
	}
	return nil, mongoerr.New(mongoerr.IndexNotFound, "can't find index with key: %s", bson.Document(index.Data))
}

func (b *Backend) listIndexes(op operation, req *backend.Request) (bson.Document, error) {
	l, err := statement.ParseListIndexes(req.Body)
	if err != nil {
		return nil, err
	}
	name := engine.Name{Database: l.Database, Collection: l.Collection}
	table, exists := b.db.Table(name)
	if !exists {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", namespace(name))
	}
	var specs []bson.Document
	for _, x := range table.Indexes() {
		specs = append(specs, x.Spec)
	}
	c := &cursor{namespace: namespace(name), in: &listed{rest: specs}, limit: int64(len(specs))}
	return b.firstBatch(op, c, l.BatchSize, false, req.Memory)
}
