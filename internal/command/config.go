package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// interceptConfigFind takes finds on the collections of a sharded cluster's config database, which clients of a router read to
// learn its shape. What they say is the least that is true: one shard, which is this server, and nothing that a balancer could move.
func (t *Table) interceptConfigFind(req *Request) Handler {
	if req.Database != "config" {
		return nil
	}
	switch name, _ := req.Argument.StringValueOK(); name {
	case "shards", "settings", "mongos", "databases", "collections", "chunks", "tags", "changelog", "actionlog",
		"lockpings", "locks", "migrations", "version":
		return t.findConfig
	}
	return nil
}

// findConfig serves filter, projection, skip and limit; none of these collections has two documents, so there is nothing to sort and
// one batch is always enough.
func (t *Table) findConfig(_ context.Context, req *Request, reply *Reply) error {
	find, err := statement.ParseFind(req.Body)
	if err != nil {
		return err
	}
	docs := t.configDocuments(find.Collection)
	var filter *query.Filter
	if len(find.Filter) > len(emptyDocument) {
		if filter, err = query.ParseFilter(find.Filter, t.env()); err != nil {
			return err
		}
		if docs, err = matching(docs, filter); err != nil {
			return err
		}
	}
	docs = docs[min(int64(len(docs)), find.Skip):]
	if find.Limit > 0 {
		docs = docs[:min(int64(len(docs)), find.Limit)]
	}
	if len(find.Projection) > len(emptyDocument) {
		p, err := query.ParseProjection(find.Projection, filter, t.env())
		if err != nil {
			return err
		}
		for i := range docs {
			if docs[i], err = p.Apply(nil, docs[i]); err != nil {
				return err
			}
		}
	}
	return writeCursor(reply, "config."+find.Collection, docs)
}

func (t *Table) configDocuments(collection string) []bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	switch collection {
	case "shards":
		dst = bsoncore.AppendStringElement(dst, "_id", "oxbow")
		dst = bsoncore.AppendStringElement(dst, "host", t.deps.Server.Address)
		dst = bsoncore.AppendInt32Element(dst, "state", 1)
	case "mongos":
		dst = bsoncore.AppendStringElement(dst, "_id", t.deps.Server.Host)
		dst = bsoncore.AppendDateTimeElement(dst, "ping", t.deps.Now().UnixMilli())
		dst = bsoncore.AppendInt64Element(dst, "up", seconds(t.deps.Now().Sub(t.deps.Server.Started)))
		dst = bsoncore.AppendBooleanElement(dst, "waiting", true)
		dst = bsoncore.AppendStringElement(dst, "mongoVersion", t.version())
	case "version":
		dst = bsoncore.AppendInt32Element(dst, "_id", 1)
		dst = bsoncore.AppendObjectIDElement(dst, "clusterId", t.topology.processID)
	default:
		return nil
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return []bson.Document{dst}
}
