package command

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

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
	if !a.source.Collection.Created {
		return mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist to validate.", a.source.Namespace())
	}
	targets, replies, err := d.Exec.Present(ctx, allTargets(a.source), validateCommand(v))
	if err != nil {
		return err
	}
	reply.Elements = appendValidated(reply.Elements, a.source.Collection, targets, replies)
	return nil
}

// validateCommand is what each partition is asked.
func validateCommand(v *statement.Validate) plan.Command {
	options := bsoncore.AppendBooleanElement(nil, "full", v.Full)
	if v.Conformance {
		options = bsoncore.AppendBooleanElement(options, "checkBSONConformance", true)
	}
	return plan.Command{Name: "validate", Rest: options}
}

// appendValidated appends the reply for a collection, of those of its partitions.
func appendValidated(dst []byte, c *catalog.Collection, targets []plan.Target, replies []bson.Document) []byte {
	dst = bsoncore.AppendStringElement(dst, "ns", c.Namespace())
	for _, name := range []string{"nInvalidDocuments", "nNonCompliantDocuments", "nrecords"} {
		dst = appendCount(dst, name, sumOf(replies, name))
	}
	dst = bsoncore.AppendInt32Element(dst, "nIndexes", int32(len(c.Indexes)+1))
	dst = appendKeysPerIndex(dst, c, replies)
	dst = bsoncore.AppendBooleanElement(dst, "valid", allValid(replies))
	dst = bsoncore.AppendBooleanElement(dst, "repaired", false)
	for _, name := range []string{"warnings", "errors"} {
		dst = appendByPartition(dst, name, targets, replies)
	}
	for _, name := range []string{"extraIndexEntries", "missingIndexEntries", "corruptRecords"} {
		dst = appendConcatenated(dst, name, replies)
	}
	return bsoncore.AppendInt32Element(dst, "partitions", int32(len(targets)))
}

func sumOf(replies []bson.Document, name string) int64 {
	var sum int64
	for _, r := range replies {
		v, _ := bson.Get(r, name)
		n, _ := v.AsInt64OK()
		sum += n
	}
	return sum
}

func allValid(replies []bson.Document) bool {
	return !slices.ContainsFunc(replies, func(r bson.Document) bool {
		v, _ := bson.Get(r, "valid")
		return v.Type != bson.TypeBoolean || !v.Boolean()
	})
}

// appendKeysPerIndex sums the keys of each index over the partitions; without any partition they are all 0.
func appendKeysPerIndex(dst []byte, c *catalog.Collection, replies []bson.Document) []byte {
	names := []string{"_id_"}
	for _, spec := range c.Indexes {
		if name, ok := bson.Get(spec, "name"); ok && name.Type == bson.TypeString {
			names = append(names, name.StringValue())
		}
	}
	parts := make([]bson.Document, 0, len(replies))
	for _, r := range replies {
		if v, ok := bson.Get(r, "keysPerIndex"); ok && v.Type == bson.TypeDocument {
			parts = append(parts, v.Data)
		}
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "keysPerIndex")
	for _, name := range names {
		dst = appendCount(dst, name, sumOf(parts, name))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendByPartition appends the partitions' texts of one array, each with the partition before it.
func appendByPartition(dst []byte, name string, targets []plan.Target, replies []bson.Document) []byte {
	var texts []string
	for i, r := range replies {
		list, _ := bson.Get(r, name)
		it := bson.Elements(list.Data)
		for it.Next() {
			text, _ := it.Value().StringValueOK()
			texts = append(texts, "partition "+targets[i].Namespace.String()+": "+text)
		}
	}
	return appendArray(dst, name, texts)
}

// appendConcatenated appends the elements of all partitions' arrays of one name.
func appendConcatenated(dst []byte, name string, replies []bson.Document) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, name)
	n := 0
	for _, r := range replies {
		list, _ := bson.Get(r, name)
		it := bson.Elements(list.Data)
		for it.Next() {
			dst = bsoncore.AppendValueElement(dst, index(n), it.Value())
			n++
		}
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}
