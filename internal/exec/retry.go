package exec

import (
	"crypto/sha256"
	"strconv"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// append appends the session, transaction number and statement numbers that make a part of a write safe to send again. A backend that takes a
// write over several namespaces keeps one record for all of them, so it gets the client's own session. On any other, parts for several partitions
// with one session and number would look like retries of each other: each part gets a session derived from the client's and its namespace.
func (r *Retry) append(body []byte, can backend.Abilities, ns backend.Namespace, index []int32) []byte {
	if r == nil {
		return body
	}
	lsid := r.LSID
	if !can.OneBatch {
		lsid = derived(lsid, ns)
	}
	body = bsoncore.AppendDocumentElement(body, "lsid", lsid)
	body = bsoncore.AppendInt64Element(body, "txnNumber", r.TxnNumber)
	at, body := bsoncore.AppendArrayElementStart(body, "stmtIds")
	for i, n := range index {
		body = strconv.AppendInt(append(body, byte(bson.TypeInt32)), int64(i), 10)
		body = bsoncore.AppendInt32(append(body, 0), r.Stmt(n))
	}
	body, _ = bsoncore.AppendArrayEnd(body, at)
	return body
}

// derived returns the session of one partition's part: a UUID (version 8, of own making) from a hash of the client's lsid, which holds the
// user's digest where there are users, and the partition.
func derived(lsid bson.Document, ns backend.Namespace) bson.Document {
	h := sha256.New()
	h.Write(lsid)
	h.Write([]byte(ns.String()))
	id := h.Sum(nil)[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendBinaryElement(dst, "id", 4, id)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
