package catalog

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/route"
)

// The collections of the catalog's database.
const (
	collectionsStored = "collections"
	partitionsStored  = "partitions"
)

// store keeps records in the catalog's database.
type store struct {
	on       deployment
	database string
}

// load reads all records.
func (s store) load(ctx context.Context) (records []*record, partitions map[string][]route.Partition, err error) {
	docs, err := s.all(ctx, collectionsStored)
	if err != nil {
		return nil, nil, err
	}
	for _, doc := range docs {
		r, err := parseRecord(doc)
		if err != nil {
			return nil, nil, err
		}
		records = append(records, r)
	}
	if docs, err = s.all(ctx, partitionsStored); err != nil {
		return nil, nil, err
	}
	partitions = map[string][]route.Partition{}
	for _, doc := range docs {
		ns, p, err := parsePartition(doc)
		if err != nil {
			return nil, nil, err
		}
		partitions[ns] = append(partitions[ns], p)
	}
	return records, partitions, nil
}

func (s store) all(ctx context.Context, collection string) ([]bson.Document, error) {
	docs, err := s.on.read(ctx, s.database, func(dst []byte) []byte {
		return bsoncore.AppendStringElement(dst, "find", collection)
	})
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	return docs, nil
}

// putRecord stores a collection's record.
func (s store) putRecord(ctx context.Context, r *record) error {
	return s.put(ctx, collectionsStored, []bson.Document{r.document()})
}

// putPartitions stores partitions, in one command.
func (s store) putPartitions(ctx context.Context, namespace string, partitions []route.Partition) error {
	docs := make([]bson.Document, len(partitions))
	for i, p := range partitions {
		docs[i] = partitionDocument(namespace, p)
	}
	return s.put(ctx, partitionsStored, docs)
}

// put replaces documents by their _id, or adds them.
func (s store) put(ctx context.Context, collection string, docs []bson.Document) error {
	if len(docs) == 0 {
		return nil
	}
	statements := make([]bson.Document, len(docs))
	for i, doc := range docs {
		id, _ := bson.Get(doc, "_id")
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = appendFilterByID(dst, id)
		dst = bsoncore.AppendDocumentElement(dst, "u", doc)
		dst = bsoncore.AppendBooleanElement(dst, "upsert", true)
		statements[i], _ = bsoncore.AppendDocumentEnd(dst, at)
	}
	_, err := s.on.command(ctx, s.database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "update", collection)
		return durable(appendDocuments(dst, "updates", statements))
	})
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	return nil
}

// deletePartitions forgets partitions.
func (s store) deletePartitions(ctx context.Context, partitions []route.Partition) error {
	ids := make([]string, len(partitions))
	for i, p := range partitions {
		ids[i] = partitionID(p)
	}
	return s.delete(ctx, partitionsStored, ids)
}

// delete removes documents by their _id, in one command.
func (s store) delete(ctx context.Context, collection string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	statements := make([]bson.Document, len(ids))
	for i, id := range ids {
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = appendFilterByID(dst, bson.Value{Type: bson.TypeString, Data: bsoncore.AppendString(nil, id)})
		dst = bsoncore.AppendInt32Element(dst, "limit", 1)
		statements[i], _ = bsoncore.AppendDocumentEnd(dst, at)
	}
	_, err := s.on.command(ctx, s.database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "delete", collection)
		return durable(appendDocuments(dst, "deletes", statements))
	})
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	return nil
}

func appendFilterByID(dst []byte, id bson.Value) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "q")
	dst = bsoncore.AppendValueElement(dst, "_id", id)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
