package embedded

import (
	"strconv"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/query"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// uuidSubtype is the binary subtype of a UUID (https://bsonspec.org/spec.html).
const uuidSubtype = 4

func (b *Backend) listCollections(op operation, req *backend.Request) (bson.Document, error) {
	l, err := statement.ParseListCollections(req.Body)
	if err != nil {
		return nil, err
	}
	wanted, err := listFilter(l.Filter)
	if err != nil {
		return nil, err
	}
	var found []bson.Document
	for _, table := range b.db.Tables(l.Database) {
		doc := collectionInfo(table, false)
		if ok, err := wanted.Match(doc); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if l.NameOnly {
			doc = collectionInfo(table, true)
		}
		found = append(found, doc)
	}
	c := &cursor{
		namespace: l.Database + ".$cmd.listCollections",
		in:        &listed{rest: found},
		limit:     int64(len(found)),
	}
	return b.firstBatch(op, c, l.BatchSize, false, req.Memory)
}

func listFilter(filter bson.Document) (*query.Filter, error) {
	if len(filter) <= emptyDocument {
		return &query.Filter{}, nil
	}
	env, err := environment(nil)
	if err != nil {
		return nil, err
	}
	return query.ParseFilter(filter, env)
}

// collectionInfo is one collection as listCollections describes it.
func collectionInfo(table *engine.Table, nameOnly bool) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "name", table.Name().Collection)
	dst = bsoncore.AppendStringElement(dst, "type", "collection")
	if !nameOnly {
		options := table.Options()
		if options == nil {
			options = bson.Document{emptyDocument, 0, 0, 0, 0}
		}
		dst = bsoncore.AppendDocumentElement(dst, "options", options)
		dst = appendDocument(dst, "info", func(dst []byte) []byte {
			uuid := table.UUID()
			dst = bsoncore.AppendBooleanElement(dst, "readOnly", false)
			return bsoncore.AppendBinaryElement(dst, "uuid", uuidSubtype, uuid[:])
		})
		dst = bsoncore.AppendDocumentElement(dst, "idIndex", table.Indexes()[0].Spec)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func (b *Backend) listDatabases(_ operation, req *backend.Request) (bson.Document, error) {
	l, err := statement.ParseListDatabases(req.Body)
	if err != nil {
		return nil, err
	}
	wanted, err := listFilter(l.Filter)
	if err != nil {
		return nil, err
	}
	sizes, err := b.databaseSizes()
	if err != nil {
		return nil, err
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	array, dst := bsoncore.AppendArrayElementStart(dst, "databases")
	var total int64
	n := 0
	for _, d := range sizes {
		doc := d.document(false)
		if ok, err := wanted.Match(doc); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		total += d.bytes
		dst = bsoncore.AppendDocumentElement(dst, strconv.Itoa(n), d.document(l.NameOnly))
		n++
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, array)
	if !l.NameOnly {
		dst = bsoncore.AppendInt64Element(dst, "totalSize", total)
		dst = bsoncore.AppendInt64Element(dst, "totalSizeMb", total>>20)
	}
	return closeReply(dst, at), nil
}

// databaseSize is a database and what its tables take on disk, estimated.
type databaseSize struct {
	name  string
	bytes int64
}

func (d databaseSize) document(nameOnly bool) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "name", d.name)
	if !nameOnly {
		dst = bsoncore.AppendInt64Element(dst, "sizeOnDisk", d.bytes)
		dst = bsoncore.AppendBooleanElement(dst, "empty", false)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// databaseSizes lists the databases that have tables, in order of name.
func (b *Backend) databaseSizes() ([]databaseSize, error) {
	var sizes []databaseSize
	for _, table := range b.db.Tables("") {
		s, err := table.Stats()
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name := table.Name().Database
		if len(sizes) == 0 || sizes[len(sizes)-1].name != name {
			sizes = append(sizes, databaseSize{name: name})
		}
		sizes[len(sizes)-1].bytes += s.DiskBytes + sum(s.IndexBytes)
	}
	return sizes, nil
}
