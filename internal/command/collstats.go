package command

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/statement"
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

// scale turns bytes into units of so many bytes.
func (f *figures) scale(unit float64) {
	for name := range f.sums {
		if name != "count" {
			f.sums[name] /= unit
		}
	}
	for name := range f.indexes {
		f.indexes[name] /= unit
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
	// In bytes: parts that are rounded to the client's scale would add up to less than there is.
	command := plan.Command{Name: "collStats"}
	targets, replies, err := d.Exec.Present(ctx, allTargets(a.source), command)
	if err != nil {
		return err
	}
	f := newFigures()
	for _, r := range replies {
		f.add(r)
	}
	average := f.sums["size"] / f.sums["count"]
	f.scale(float64(c.Scale))
	dst := bsoncore.AppendStringElement(reply.Elements, "ns", a.source.Namespace())
	dst = bsoncore.AppendBooleanElement(dst, "sharded", false)
	dst = bsoncore.AppendBooleanElement(dst, "capped", false)
	for _, name := range []string{"count", "size", "storageSize", "totalIndexSize", "totalSize"} {
		dst = f.append(dst, name)
	}
	if f.sums["count"] > 0 {
		dst = bsoncore.AppendDoubleElement(dst, "avgObjSize", average)
	}
	dst = f.appendIndexSizes(dst)
	indexes := 0
	if a.source.Collection.Created {
		indexes = len(a.source.Collection.Indexes) + 1
	}
	dst = bsoncore.AppendInt32Element(dst, "nindexes", int32(indexes))
	dst = appendCount(dst, "scaleFactor", c.Scale)
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
	for i := range src.Collection.Table.Partitions {
		out = append(out, plan.PartitionTarget(src.Namespace(), &src.Collection.Table.Partitions[i]))
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
