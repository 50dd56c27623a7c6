package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
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
			problems.AppendString("partition " + targets[i].Namespace.String() + ": " + text)
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
