package backend

import (
	"context"
	"fmt"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Command makes the body of a command: its elements, that of its name first, and the database that it is for.
func Command(database string, elements func(dst []byte) []byte) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(elements(dst), "$db", database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// Ask runs a command and returns its reply. A reply with ok: 0 is returned as its error, as Check has it.
func Ask(ctx context.Context, b Backend, body bson.Document) (bson.Document, error) {
	name, _, _ := bson.First(body)
	reply, err := b.Run(ctx, &Request{Body: body})
	if err == nil {
		err = Check(reply)
	}
	if err != nil {
		return nil, fmt.Errorf("ask with %s: %w", name, err)
	}
	return reply, nil
}
