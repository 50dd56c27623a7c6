package statement

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Fill makes what an insert puts into documents by itself.
type Fill struct {
	NewID        func() [12]byte
	NewTimestamp func() uint64 // see Timestamps.Next
}

// Storable returns doc as an insert stores it: _id first, generated when it is missing, and the time in place of every other top-level field
// that is an empty timestamp (https://www.mongodb.com/docs/manual/reference/bson-types/#timestamps). doc itself is returned where nothing has to
// change. It refuses an _id that is an array, a regular expression or undefined, one whose fields start with $, a second _id,
// and documents beyond 16 MiB (https://www.mongodb.com/docs/manual/core/document/#the-_id-field).
func Storable(doc bson.Document, fill Fill) (bson.Document, error) {
	if len(doc) > bson.MaxDocumentSize {
		return nil, mongoerr.New(mongoerr.BadValue, "object to insert too large. size in bytes: %d, max size: %d",
			len(doc), bson.MaxDocumentSize)
	}
	var id []byte // the element
	first, stamp := false, false
	it := bson.Elements(doc)
	for i := 0; it.Next(); i++ {
		if string(it.Key()) != "_id" {
			stamp = stamp || isEmptyTimestamp(it.Value())
			continue
		}
		if id != nil {
			return nil, mongoerr.New(mongoerr.BadValue, "can't have multiple _id fields in one document")
		}
		if err := query.CheckID(it.Value()); err != nil {
			return nil, err
		}
		id, first = it.Raw(), i == 0
	}
	switch {
	case id == nil:
		doc = withID(doc, fill.NewID())
	case !first:
		doc = idFirst(doc, id)
	case stamp:
		doc = bytes.Clone(doc)
	}
	if stamp {
		stampTimestamps(doc, fill.NewTimestamp)
	}
	return doc, nil
}

func isEmptyTimestamp(v bson.Value) bool {
	return v.Type == bson.TypeTimestamp && binary.LittleEndian.Uint64(v.Data) == 0
}

// stampTimestamps overwrites doc's empty timestamps.
func stampTimestamps(doc bson.Document, newTimestamp func() uint64) {
	it := bson.Elements(doc)
	for it.Next() {
		if v := it.Value(); isEmptyTimestamp(v) && string(it.Key()) != "_id" {
			binary.LittleEndian.PutUint64(v.Data, newTimestamp())
		}
	}
}

// Timestamps gives out BSON timestamps, seconds since 1970 and an ordinal within the second: each is larger than the one before. The zero value is
// ready; it may be used concurrently.
type Timestamps struct{ last atomic.Uint64 }

// Next returns the timestamp for now, or the one behind the last where that is later.
func (t *Timestamps) Next(now time.Time) uint64 {
	for {
		last := t.last.Load()
		next := max(uint64(now.Unix())<<32|1, last+1)
		if t.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

func idFirst(doc bson.Document, id []byte) bson.Document {
	start, out := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)))
	out = append(out, id...)
	it := bson.Elements(doc)
	for it.Next() {
		if string(it.Key()) != "_id" {
			out = append(out, it.Raw()...)
		}
	}
	out, _ = bsoncore.AppendDocumentEnd(out, start)
	return out
}

func withID(doc bson.Document, id [12]byte) bson.Document {
	start, out := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)+17))
	out = bsoncore.AppendObjectIDElement(out, "_id", id)
	out = append(out, doc[4:len(doc)-1]...)
	out, _ = bsoncore.AppendDocumentEnd(out, start)
	return out
}
