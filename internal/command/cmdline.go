package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (t *Table) getCmdLineOpts(_ context.Context, _ *Request, reply *Reply) error {
	dst := appendArray(reply.Elements, "argv", t.deps.Server.Argv)
	if t.deps.Server.Settings != nil {
		reply.Elements = bsoncore.AppendDocumentElement(dst, "parsed", t.deps.Server.Settings)
		return nil
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "parsed")
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}
