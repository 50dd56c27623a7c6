package catalog

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// deployment runs the few commands that the catalog needs on one backend.
type deployment struct {
	name string
	run  backend.Backend
}

// command runs a command and returns its reply; a reply with ok: 0 or a write error is an error.
func (d deployment) command(ctx context.Context, database string, fields func([]byte) []byte) (bson.Document, error) {
	at, body := bsoncore.AppendDocumentStart(nil)
	body = fields(body)
	body = bsoncore.AppendStringElement(body, "$db", database)
	body, err := bsoncore.AppendDocumentEnd(body, at)
	if err != nil {
		return nil, fmt.Errorf("build a command: %w", err)
	}
	reply, err := d.run.Run(ctx, &backend.Request{Body: body})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.NoReply(ctx, d.name, err), err)
	}
	written, err := backend.ParseWriteReply(reply)
	if err != nil {
		return nil, err
	}
	return reply, written.Err()
}

// durable appends the write concern of everything that the catalog does.
func durable(dst []byte) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "writeConcern")
	dst = bsoncore.AppendStringElement(dst, "w", "majority")
	dst = bsoncore.AppendBooleanElement(dst, "j", true)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// read returns the documents of a cursor command's reply, all batches.
func (d deployment) read(ctx context.Context, database string, fields func([]byte) []byte) ([]bson.Document, error) {
	reply, err := d.command(ctx, database, fields)
	if err != nil {
		return nil, err
	}
	var docs []bson.Document
	for {
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			return nil, err
		}
		it := bson.Elements(c.Batch)
		for it.Next() {
			docs = append(docs, it.Value().Data)
		}
		if c.ID == 0 {
			return docs, nil
		}
		ns := c.Namespace()
		collection := ns[min(len(database)+1, len(ns)):]
		reply, err = d.command(ctx, database, func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "getMore", c.ID)
			return bsoncore.AppendStringElement(dst, "collection", collection)
		})
		if err != nil {
			return nil, err
		}
	}
}

// collections lists the physical collections of a database.
func (d deployment) collections(ctx context.Context, database string) ([]string, error) {
	docs, err := d.read(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "listCollections", 1)
		return bsoncore.AppendBooleanElement(dst, "nameOnly", true)
	})
	return names(docs, err, "list the collections of "+database)
}

// databases lists the databases.
func (d deployment) databases(ctx context.Context) ([]string, error) {
	reply, err := d.command(ctx, "admin", func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "listDatabases", 1)
		return bsoncore.AppendBooleanElement(dst, "nameOnly", true)
	})
	var docs []bson.Document
	if list, ok := bson.Get(reply, "databases"); err == nil && ok {
		it := bson.Elements(list.Data)
		for it.Next() {
			docs = append(docs, it.Value().Data)
		}
	}
	return names(docs, err, "list the databases")
}

func names(docs []bson.Document, err error, doing string) ([]string, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var list []string
	for _, doc := range docs {
		name, _ := bson.Get(doc, "name")
		if text, ok := name.StringValueOK(); ok {
			list = append(list, text)
		}
	}
	return list, nil
}

// exists reports whether a physical collection is there.
func (d deployment) exists(ctx context.Context, database, collection string) (bool, error) {
	docs, err := d.read(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "listCollections", 1)
		at, dst := bsoncore.AppendDocumentElementStart(dst, "filter")
		dst = bsoncore.AppendStringElement(dst, "name", collection)
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		return bsoncore.AppendBooleanElement(dst, "nameOnly", true)
	})
	if err != nil {
		return false, fmt.Errorf("look for %s.%s: %w", database, collection, err)
	}
	return len(docs) > 0, nil
}

// holdsDocuments reports whether a physical collection has a document.
func (d deployment) holdsDocuments(ctx context.Context, database, collection string) (bool, error) {
	docs, err := d.read(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "find", collection)
		dst = bsoncore.AppendInt32Element(dst, "limit", 1)
		return bsoncore.AppendBooleanElement(dst, "singleBatch", true)
	})
	if err != nil {
		return false, fmt.Errorf("look into %s.%s: %w", database, collection, err)
	}
	return len(docs) > 0, nil
}

// create makes a physical collection with the options of a create command. One that is there already is no error.
func (d deployment) create(ctx context.Context, database, collection string, options bson.Document) error {
	_, err := d.command(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "create", collection)
		it := bson.Elements(options)
		for it.Next() {
			dst = append(dst, it.Raw()...)
		}
		return durable(dst)
	})
	if err != nil && !mongoerr.Is(err, mongoerr.NamespaceExists) {
		return fmt.Errorf("create %s.%s: %w", database, collection, err)
	}
	return nil
}

// createIndexes makes indexes on a physical collection.
func (d deployment) createIndexes(ctx context.Context, database, collection string, specs []bson.Document) error {
	if len(specs) == 0 {
		return nil
	}
	_, err := d.command(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "createIndexes", collection)
		dst = appendDocuments(dst, "indexes", specs)
		return durable(dst)
	})
	if err != nil {
		return fmt.Errorf("create indexes on %s.%s: %w", database, collection, err)
	}
	return nil
}

// dropIndex drops an index by name. One that is not there is no error.
func (d deployment) dropIndex(ctx context.Context, database, collection, name string) error {
	_, err := d.command(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "dropIndexes", collection)
		dst = bsoncore.AppendStringElement(dst, "index", name)
		return durable(dst)
	})
	if err != nil && !mongoerr.Is(err, mongoerr.IndexNotFound) && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return fmt.Errorf("drop index %s on %s.%s: %w", name, database, collection, err)
	}
	return nil
}

// drop drops a physical collection. One that is not there is no error.
func (d deployment) drop(ctx context.Context, database, collection string) error {
	_, err := d.command(ctx, database, func(dst []byte) []byte {
		return durable(bsoncore.AppendStringElement(dst, "drop", collection))
	})
	if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return fmt.Errorf("drop %s.%s: %w", database, collection, err)
	}
	return nil
}

// dropEmptyDatabase drops a database that has no collection left, so that its disk is given back; with collections in it, it is left alone.
func (d deployment) dropEmptyDatabase(ctx context.Context, database string) error {
	left, err := d.collections(ctx, database)
	if err != nil || len(left) > 0 {
		return err
	}
	_, err = d.command(ctx, database, func(dst []byte) []byte {
		return durable(bsoncore.AppendInt32Element(dst, "dropDatabase", 1))
	})
	if err != nil {
		return fmt.Errorf("drop database %s: %w", database, err)
	}
	return nil
}

func appendDocuments(dst []byte, key string, docs []bson.Document) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, key)
	for i, doc := range docs {
		dst = bsoncore.AppendDocumentElement(dst, fmt.Sprint(i), doc)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}
