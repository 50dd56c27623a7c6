package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

// dbStats answers dbStats: plain collections and those with a layout, wherever their partitions lie.
func (d *Data) dbStats(ctx context.Context, req *Request, reply *Reply) error {
	s, err := statement.ParseDBStats(req.Body)
	if err != nil {
		return err
	}
	if err := d.open(s.Database); err != nil {
		return err
	}
	snapshot := d.Catalog.Snapshot()
	f := newFigures()
	lies := databasesOf(snapshot, s.Database)
	var disk []byte
	for i, p := range lies {
		r, err := d.runOn(ctx, p, "dbStats", bsoncore.AppendInt64Element(nil, "scale", s.Scale))
		if err != nil {
			return err
		}
		f.add(r)
		if i == 0 {
			disk = diskOf(r)
		} else if p.backend != lies[0].backend {
			disk = nil
		}
	}
	name := snapshot.BackendFor(s.Database)
	plain, _, err := d.plainCollections(ctx, view{snapshot: snapshot}, name, s.Database)
	if err != nil {
		return err
	}
	indexes, err := d.indexesOf(ctx, name, s.Database, plain)
	if err != nil {
		return err
	}
	collections := len(plain)
	for _, c := range snapshot.Collections(s.Database) {
		if c.Created {
			collections++
			indexes += len(c.Indexes) + 1
		}
	}
	dst := bsoncore.AppendStringElement(reply.Elements, "db", s.Database)
	dst = bsoncore.AppendInt32Element(dst, "collections", int32(collections))
	dst = f.append(dst, "views")
	dst = f.append(dst, "objects")
	if n := f.sums["objects"]; n > 0 {
		dst = bsoncore.AppendDoubleElement(dst, "avgObjSize", f.sums["dataSize"]*float64(s.Scale)/n)
	} else {
		dst = bsoncore.AppendDoubleElement(dst, "avgObjSize", 0)
	}
	dst = f.append(dst, "dataSize")
	dst = f.append(dst, "storageSize")
	dst = bsoncore.AppendInt32Element(dst, "indexes", int32(indexes))
	dst = f.append(dst, "indexSize")
	dst = f.append(dst, "totalSize")
	dst = bsoncore.AppendInt64Element(dst, "scaleFactor", s.Scale)
	reply.Elements = append(dst, disk...)
	return nil
}

// diskOf are the elements of a reply to dbStats that tell of the file system: they are right for a whole that lies on one backend.
func diskOf(reply bson.Document) []byte {
	var disk []byte
	for _, name := range [...]string{"fsUsedSize", "fsTotalSize"} {
		if v, ok := bson.Get(reply, name); ok {
			disk = bsoncore.AppendValueElement(disk, name, v)
		}
	}
	return disk
}

// indexesOf counts the indexes of plain collections.
func (d *Data) indexesOf(ctx context.Context, name, database string, collections []string) (int, error) {
	n := 0
	for _, c := range collections {
		t := plan.Target{Backend: name, Namespace: backend.Namespace{Database: database, Collection: c}}
		replies, err := d.Exec.Gather(ctx, []plan.Target{t}, plan.Command{Name: "listIndexes"})
		if err != nil {
			return 0, err
		}
		cursor, err := backend.ParseCursorReply(replies[0])
		if err != nil {
			return 0, err
		}
		it := bson.Elements(cursor.Batch)
		for it.Next() {
			n++
		}
	}
	return n, nil
}
