package command

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// appendError appends the elements of an error reply, in MongoDB's order.
func appendError(dst []byte, e *mongoerr.Error) []byte {
	dst = bsoncore.AppendDoubleElement(dst, "ok", 0)
	dst = bsoncore.AppendStringElement(dst, "errmsg", e.Message)
	dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Code))
	dst = bsoncore.AppendStringElement(dst, "codeName", e.Code.String())
	it := bson.Elements(e.Info)
	for e.Info != nil && it.Next() {
		dst = append(dst, it.Raw()...)
	}
	if len(e.Labels) > 0 {
		var at int32
		at, dst = bsoncore.AppendArrayElementStart(dst, "errorLabels")
		for i, l := range e.Labels {
			dst = bsoncore.AppendStringElement(dst, index(i), l)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
	}
	return dst
}

// ErrorReply returns a whole error document, for requests that never reached a command.
func ErrorReply(dst []byte, err error) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = appendError(dst, mongoerr.From(err))
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
