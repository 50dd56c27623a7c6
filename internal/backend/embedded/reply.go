package embedded

import (
	"math"
	"strconv"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// newReply builds a reply: fields appends what stands before ok: 1.
func newReply(fields func([]byte) []byte) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 256))
	dst = fields(dst)
	return closeReply(dst, at)
}

// closeReply appends ok: 1 and ends the document that began at at.
func closeReply(dst []byte, at int32) bson.Document {
	dst = bsoncore.AppendDoubleElement(dst, "ok", 1)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func emptyReply() bson.Document { return newReply(func(dst []byte) []byte { return dst }) }

// errorReply is the reply of a command that failed as a whole.
func errorReply(err error) bson.Document {
	e := mongoerr.From(err)
	at, dst := bsoncore.AppendDocumentStart(nil)
	if len(e.Labels) > 0 {
		var labels int32
		labels, dst = bsoncore.AppendArrayElementStart(dst, "errorLabels")
		for i, label := range e.Labels {
			dst = bsoncore.AppendStringElement(dst, strconv.Itoa(i), label)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, labels)
	}
	dst = bsoncore.AppendDoubleElement(dst, "ok", 0)
	dst = bsoncore.AppendStringElement(dst, "errmsg", e.Message)
	dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Code))
	dst = bsoncore.AppendStringElement(dst, "codeName", e.Code.String())
	if len(e.Info) > 5 {
		dst = append(dst, e.Info[4:len(e.Info)-1]...)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendNumber appends a whole number as MongoDB's replies have most of theirs: an int where it fits, else a long.
func appendNumber(dst []byte, key string, n int64) []byte {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return bsoncore.AppendInt32Element(dst, key, int32(n))
	}
	return bsoncore.AppendInt64Element(dst, key, n)
}

// appendDocument appends an embedded document whose fields are appended by fields.
func appendDocument(dst []byte, key string, fields func([]byte) []byte) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	dst = fields(dst)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendEmptyArray appends an array without elements.
func appendEmptyArray(dst []byte, key string) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, key)
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// appendIndexed appends the type byte and the key of an array's i-th element.
func appendIndexed(dst []byte, t bson.Type, i int) []byte {
	dst = append(dst, byte(t))
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, 0)
}

func (b *Backend) ping(operation, *backend.Request) (bson.Document, error) { return emptyReply(), nil }
