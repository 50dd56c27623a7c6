package backend

import (
	"encoding/binary"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// CursorReply is the cursor in the reply of find, aggregate, listCollections, listIndexes or getMore.
type CursorReply struct {
	ID      int64      // 0: exhausted
	Batch   bson.Array // the documents, raw, in the reply's bytes
	ns      bson.Value
	idBytes []byte // the id's 8 bytes in the reply
}

// Namespace returns the namespace that the cursor says it reads.
func (c *CursorReply) Namespace() string {
	ns, _ := c.ns.StringValueOK()
	return ns
}

// ParseCursorReply reads a reply with a cursor. A reply with ok: 0 is returned as its error.
func ParseCursorReply(reply bson.Document) (CursorReply, error) {
	var c CursorReply
	var cursor, done bson.Value
	fields := bson.Elements(reply)
	for fields.Next() {
		switch string(fields.Key()) {
		case "cursor":
			cursor = fields.Value()
		case "ok":
			done = fields.Value()
		}
	}
	if n, ok := done.AsInt64OK(); !ok || n != 1 {
		if err := Check(reply); err != nil {
			return c, err
		}
	}
	if cursor.Type == 0 {
		return c, mongoerr.New(mongoerr.InternalError, "the backend's reply has no cursor")
	}
	it := bson.Elements(cursor.Data)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "id":
			c.ID, _ = v.AsInt64OK()
			if v.Type == bson.TypeInt64 {
				c.idBytes = v.Data
			}
		case "ns":
			c.ns = v
		case "firstBatch", "nextBatch":
			c.Batch = v.Data
		}
	}
	return c, it.Err()
}

// SetID puts a gateway's own cursor id in the place of the backend's, in the reply's bytes.
func (c *CursorReply) SetID(id int64) {
	if c.idBytes != nil {
		binary.LittleEndian.PutUint64(c.idBytes, uint64(id))
	}
	c.ID = id
}

// CursorBuilder writes a cursor element as find's reply or, with next, getMore's has it:
//
//	dst = b.Start(dst, next)
//	dst = … // the documents, as array elements "0", "1", …
//	dst = b.End(dst, id, ns)
type CursorBuilder struct {
	// Partial says that documents are missing which could not be reached.
	Partial bool

	cursor, batch int32
}

// Start opens the cursor and its batch.
func (b *CursorBuilder) Start(dst []byte, next bool) []byte {
	name := "firstBatch"
	if next {
		name = "nextBatch"
	}
	b.cursor, dst = bsoncore.AppendDocumentElementStart(dst, "cursor")
	b.batch, dst = bsoncore.AppendArrayElementStart(dst, name)
	return dst
}

// End closes the batch and the cursor.
func (b *CursorBuilder) End(dst []byte, id int64, ns string) []byte {
	dst, _ = bsoncore.AppendArrayEnd(dst, b.batch)
	if b.Partial {
		dst = bsoncore.AppendBooleanElement(dst, "partialResultsReturned", true)
	}
	dst = bsoncore.AppendInt64Element(dst, "id", id)
	dst = bsoncore.AppendStringElement(dst, "ns", ns)
	dst, _ = bsoncore.AppendDocumentEnd(dst, b.cursor)
	return dst
}
