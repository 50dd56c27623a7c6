package command

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/exec"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// listCollections answers listCollections: plain collections and those with a layout, each once, whatever its partitions; these are
// listed as well with Oxbow's own option showPartitions.
func (d *Data) listCollections(ctx context.Context, req *Request, reply *Reply) error {
	l, err := statement.ParseListCollections(req.Body)
	if err != nil {
		return err
	}
	filter, err := query.ParseFilter(l.Filter, d.env())
	if err != nil {
		return err
	}
	if err := d.open(l.Database); err != nil {
		return err
	}
	s := d.Catalog.Snapshot()
	docs, err := d.physicalCollections(ctx, s.BackendFor(l.Database), l.Database)
	if err != nil {
		return err
	}
	if !l.Partitions {
		docs = slices.DeleteFunc(docs, func(doc bson.Document) bool {
			c, _ := s.Physical(s.BackendFor(l.Database), l.Database, nameOf(doc))
			return c != nil
		})
	}
	for _, c := range s.Collections(l.Database) {
		if c.Created {
			docs = append(docs, collectionDocument(c))
		}
	}
	slices.SortFunc(docs, func(a, b bson.Document) int { return strings.Compare(nameOf(a), nameOf(b)) })
	if docs, err = matching(docs, filter); err != nil {
		return err
	}
	if l.NameOnly {
		docs = namesOnly(docs)
	}
	return d.firstBatch(ctx, req, reply, l.Database+".$cmd.listCollections", exec.Slice(docs), batch{size: l.BatchSize})
}

// physicalCollections lists what a backend has in a database.
func (d *Data) physicalCollections(ctx context.Context, name, database string) ([]bson.Document, error) {
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendInt32Element(body, "listCollections", 1)
	body = bsoncore.AppendDocumentElement(body, "cursor", emptyDocument)
	body = bsoncore.AppendStringElement(body, "$db", database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	stream, err := d.Exec.Command(ctx, name, database, body)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var docs []bson.Document
	for {
		doc, err := stream.Next(ctx)
		if doc == nil || err != nil {
			return docs, err
		}
		docs = append(docs, doc)
	}
}

// plainCollections returns the names of a database's collections that are no partitions, and the number of those that are.
func (d *Data) plainCollections(ctx context.Context, a view, name, database string) (plain []string, partitions int, err error) {
	docs, err := d.physicalCollections(ctx, name, database)
	for _, doc := range docs {
		if c, _ := a.snapshot.Physical(name, database, nameOf(doc)); c != nil {
			partitions++
		} else {
			plain = append(plain, nameOf(doc))
		}
	}
	return plain, partitions, err
}

// collectionDocument describes a collection with a layout as listCollections does.
func collectionDocument(c *catalog.Collection) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "name", c.Name)
	dst = bsoncore.AppendStringElement(dst, "type", "collection")
	options := c.Options
	if options == nil {
		options = emptyDocument
	}
	dst = bsoncore.AppendDocumentElement(dst, "options", options)
	info, dst := bsoncore.AppendDocumentElementStart(dst, "info")
	dst = bsoncore.AppendBooleanElement(dst, "readOnly", false)
	dst = bsoncore.AppendBinaryElement(dst, "uuid", 4, c.UUID[:])
	dst, _ = bsoncore.AppendDocumentEnd(dst, info)
	dst = bsoncore.AppendDocumentElement(dst, "idIndex", idIndex())
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// physical is a database on a backend.
type physical struct {
	backend  string
	database string
}

// databasesOf returns where the partitions of collections lie, beside the plain database itself.
func databasesOf(s *catalog.Snapshot, database string) []physical {
	out := []physical{{s.BackendFor(database), database}}
	for _, c := range s.Collections(database) {
		for i := range c.All {
			if p := (physical{c.All[i].Backend, c.All[i].Database}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// runOn runs a command of a database, such as dbStats, on a backend.
func (d *Data) runOn(ctx context.Context, p physical, name string, rest []byte) (bson.Document, error) {
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendInt32Element(body, name, 1)
	body = append(body, rest...)
	body = bsoncore.AppendStringElement(body, "$db", p.database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	reply, err := d.Exec.Run(ctx, p.backend, &backend.Request{Body: body})
	if err != nil {
		return nil, err
	}
	return reply, backend.Check(reply)
}
