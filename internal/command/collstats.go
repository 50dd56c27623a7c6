package command

import (
	"context"
	"maps"
	"slices"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// figures are the numbers of collStats or dbStats that add up over partitions, by name; indexSizes apart.
type figures struct {
	sums    map[string]float64
	indexes map[string]float64
}

// summed are the fields that add up; what follows from them (avgObjSize) or does not add up (nindexes) is computed.
var summed = []string{"count", "size", "storageSize", "freeStorageSize", "totalIndexSize", "totalSize", "numOrphanDocs",
	"objects", "dataSize", "indexSize", "views"}

func newFigures() *figures {
	return &figures{sums: make(map[string]float64), indexes: make(map[string]float64)}
}

func (f *figures) add(reply bson.Document) {
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch name := string(it.Key()); {
		case name == "indexSizes":
			sizes := bson.Elements(v.Data)
			for sizes.Next() {
				n, _ := sizes.Value().AsFloat64OK()
				f.indexes[string(sizes.Key())] += n
			}
		case slices.Contains(summed, name):
			n, _ := v.AsFloat64OK()
			f.sums[name] += n
		}
	}
}

// append appends one figure, as an int where it fits.
func (f *figures) append(dst []byte, name string) []byte {
	return appendCount(dst, name, int64(f.sums[name]))
}

// collStats answers collStats: the sums over all partitions. With Oxbow's own option showPartitions each partition's own figures follow.
func (d *Data) collStats(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forward(ctx, a.source.Backend, req, reply)
	}
	c, err := statement.ParseCollStats(req.Body)
	if err != nil {
		return err
	}
	targets := allTargets(a.source)
	command := plan.Command{Name: "collStats", Rest: bsoncore.AppendInt64Element(nil, "scale", c.Scale)}
	replies, err := d.Exec.Gather(ctx, targets, command)
	if err != nil {
		return err
	}
	f := newFigures()
	for _, r := range replies {
		f.add(r)
	}
	dst := bsoncore.AppendStringElement(reply.Elements, "ns", a.source.Namespace())
	dst = bsoncore.AppendBooleanElement(dst, "sharded", false)
	dst = bsoncore.AppendBooleanElement(dst, "capped", false)
	for _, name := range []string{"count", "size", "storageSize", "totalIndexSize", "totalSize"} {
		dst = f.append(dst, name)
	}
	if n := f.sums["count"]; n > 0 {
		dst = bsoncore.AppendDoubleElement(dst, "avgObjSize", f.sums["size"]*float64(c.Scale)/n)
	}
	dst = f.appendIndexSizes(dst)
	indexes := 0
	if a.source.Collection.Created {
		indexes = len(a.source.Collection.Indexes) + 1
	}
	dst = bsoncore.AppendInt32Element(dst, "nindexes", int32(indexes))
	dst = bsoncore.AppendInt64Element(dst, "scaleFactor", c.Scale)
	dst = bsoncore.AppendInt32Element(dst, "partitions", int32(len(targets)))
	if c.Partitions {
		dst = appendByTarget(dst, "byPartition", targets, replies)
	}
	reply.Elements = dst
	return nil
}

func (f *figures) appendIndexSizes(dst []byte) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "indexSizes")
	for _, name := range slices.Sorted(maps.Keys(f.indexes)) {
		dst = appendCount(dst, name, int64(f.indexes[name]))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// allTargets are a collection's routed partitions.
func allTargets(src plan.Source) []plan.Target {
	var out []plan.Target
	for _, p := range src.Collection.Table.Partitions {
		out = append(out, plan.Target{Backend: p.Backend, Namespace: backend.Namespace{Database: p.Database, Collection: p.Collection}})
	}
	return out
}

// appendByTarget appends each target's reply under its namespace.
func appendByTarget(dst []byte, name string, targets []plan.Target, replies []bson.Document) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, name)
	for i, t := range targets {
		dst = bsoncore.AppendDocumentElement(dst, t.Namespace.String(), replies[i])
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// dbStats answers dbStats: plain collections and those with a layout, wherever their partitions lie.
func (d *Data) dbStats(ctx context.Context, req *Request, reply *Reply) error {
	s, err := statement.ParseDBStats(req.Body)
	if err != nil {
		return err
	}
	if err := open(s.Database); err != nil {
		return err
	}
	snapshot := d.Catalog.Snapshot()
	f := newFigures()
	for _, p := range databasesOf(snapshot, s.Database) {
		r, err := d.runOn(ctx, p, "dbStats", bsoncore.AppendInt64Element(nil, "scale", s.Scale))
		if err != nil {
			return err
		}
		f.add(r)
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
	reply.Elements = bsoncore.AppendInt64Element(dst, "scaleFactor", s.Scale)
	return nil
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

// validate answers validate: every partition is checked.
func (d *Data) validate(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forward(ctx, a.source.Backend, req, reply)
	}
	v, err := statement.ParseValidate(req.Body)
	if err != nil {
		return err
	}
	targets := allTargets(a.source)
	command := plan.Command{Name: "validate", Rest: bsoncore.AppendBooleanElement(nil, "full", v.Full)}
	replies, err := d.Exec.Gather(ctx, targets, command)
	if err != nil {
		return err
	}
	valid, records := true, int64(0)
	problems := bsoncore.NewArrayBuilder()
	for i, r := range replies {
		if ok, _ := bson.Get(r, "valid"); ok.Type != bson.TypeBoolean || !ok.Boolean() {
			valid = false
		}
		n, _ := bson.Get(r, "nrecords")
		count, _ := n.AsInt64OK()
		records += count
		list, _ := bson.Get(r, "errors")
		it := bson.Elements(list.Data)
		for it.Next() {
			text, _ := it.Value().StringValueOK()
			problems.AppendString(targets[i].Namespace.String() + ": " + text)
		}
	}
	dst := bsoncore.AppendStringElement(reply.Elements, "ns", a.source.Namespace())
	dst = appendCount(dst, "nrecords", records)
	dst = bsoncore.AppendInt32Element(dst, "nIndexes", int32(len(a.source.Collection.Indexes)+1))
	dst = bsoncore.AppendBooleanElement(dst, "valid", valid)
	dst = bsoncore.AppendArrayElement(dst, "warnings", bsoncore.NewArrayBuilder().Build())
	dst = bsoncore.AppendArrayElement(dst, "errors", problems.Build())
	reply.Elements = bsoncore.AppendInt32Element(dst, "partitions", int32(len(targets)))
	return nil
}
