package command

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// createIndexes answers createIndexes: on every partition there is, and on those to come.
func (d *Data) createIndexes(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	if err := refuseInTransaction(req, a); err != nil {
		return err
	}
	c, err := statement.ParseCreateIndexes(req.Body)
	if err != nil {
		return err
	}
	created, targets, err := d.Catalog.CreateIndexes(ctx, a.source.Namespace(), c.Indexes)
	if err != nil {
		return err
	}
	if err := targetError("createIndexes", targets); err != nil {
		return err
	}
	before := len(a.source.Collection.Indexes) + 1
	dst := bsoncore.AppendInt32Element(reply.Elements, "numIndexesBefore", int32(before))
	dst = bsoncore.AppendInt32Element(dst, "numIndexesAfter", int32(before+created))
	if created > 0 || !a.source.Collection.Created {
		dst = bsoncore.AppendBooleanElement(dst, "createdCollectionAutomatically", !a.source.Collection.Created)
	}
	if created == 0 {
		dst = bsoncore.AppendStringElement(dst, "note", "all indexes already exist")
	}
	reply.Elements = dst
	return nil
}

// targetError is the error of an index command of which some partitions failed: the first one's own, saying how many there were.
func targetError(command string, targets []catalog.Outcome) error {
	failed := 0
	var first *catalog.Outcome
	for i := range targets {
		if targets[i].Err != nil {
			if failed == 0 {
				first = &targets[i]
			}
			failed++
		}
	}
	if first == nil {
		return nil
	}
	e := *mongoerr.From(first.Err)
	e.Message = mongoerr.New(e.Code, "%s failed on %d of %d partitions; the same command again resumes; %s: %s",
		command, failed, len(targets), first.Partition.Name(), e.Message).Message
	return &e
}

// dropIndexes answers dropIndexes.
func (d *Data) dropIndexes(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	defer d.guard.forget()
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	s, err := statement.ParseDropIndexes(req.Body)
	if err != nil {
		return err
	}
	targets, err := d.Catalog.DropIndexes(ctx, a.source.Namespace(), s.Index)
	if err != nil {
		return err
	}
	reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "nIndexesWas", int32(len(a.source.Collection.Indexes)+1))
	if name, ok := s.Index.StringValueOK(); ok && name == "*" {
		reply.Elements = bsoncore.AppendStringElement(reply.Elements, "msg", "non-_id indexes dropped for collection")
	}
	return targetError("dropIndexes", targets)
}

// listIndexes answers listIndexes.
func (d *Data) listIndexes(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardCursor(ctx, a.source, req, reply)
	}
	l, err := statement.ParseListIndexes(req.Body)
	if err != nil {
		return err
	}
	c := a.source.Collection
	if !c.Created {
		return mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", c.Namespace())
	}
	docs := []bson.Document{idIndex()}
	for _, spec := range c.Indexes {
		docs = append(docs, listedIndex(spec))
	}
	return d.firstBatch(ctx, req, reply, c.Namespace(), exec.Slice(docs), batch{size: l.BatchSize})
}

// listedIndex is an index's specification as listIndexes gives it: version, key and name first.
func listedIndex(spec bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(spec)+8))
	dst = bsoncore.AppendInt32Element(dst, "v", 2)
	for _, name := range []string{"key", "name"} {
		v, _ := bson.Get(spec, name)
		dst = bsoncore.AppendValueElement(dst, name, v)
	}
	it := bson.Elements(spec)
	for it.Next() {
		switch string(it.Key()) {
		case "v", "key", "name", "ns", "dropDups":
		case "background":
			dst = bsoncore.AppendBooleanElement(dst, "background", isTrue(it.Value()))
		default:
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// idIndex is the specification of the index on _id.
func idIndex() bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendInt32Element(dst, "v", 2)
	key, dst := bsoncore.AppendDocumentElementStart(dst, "key")
	dst = bsoncore.AppendInt32Element(dst, "_id", 1)
	dst, _ = bsoncore.AppendDocumentEnd(dst, key)
	dst = bsoncore.AppendStringElement(dst, "name", "_id_")
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
