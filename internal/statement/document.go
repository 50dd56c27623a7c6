package statement

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Storable returns doc as an insert stores it: _id first, generated from newID when it is missing. doc itself is returned where nothing
// has to change. It refuses an _id that is an array, a regular expression or undefined, one whose fields start with $, a second _id,
// and documents beyond 16 MiB (https://www.mongodb.com/docs/manual/core/document/#the-_id-field).
func Storable(doc bson.Document, newID func() [12]byte) (bson.Document, error) {
	if len(doc) > bson.MaxDocumentSize {
		return nil, mongoerr.New(mongoerr.BadValue, "object to insert too large. size in bytes: %d, max size: %d",
			len(doc), bson.MaxDocumentSize)
	}
	it := bson.Elements(doc)
	for first := true; it.Next(); first = false {
		if string(it.Key()) != "_id" {
			continue
		}
		if err := checkID(it.Value()); err != nil {
			return nil, err
		}
		id := it.Raw()
		for it.Next() {
			if string(it.Key()) == "_id" {
				return nil, mongoerr.New(mongoerr.BadValue, "can't have multiple _id fields in one document")
			}
		}
		if first {
			return doc, nil
		}
		return idFirst(doc, id), nil
	}
	return withID(doc, newID()), nil
}

func checkID(id bson.Value) error {
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.New(mongoerr.InvalidIDField, "The '_id' value cannot be of type %s", bson.TypeName(id.Type))
	case bson.TypeDocument:
		it := bson.Elements(id.Data)
		for it.Next() {
			if k := it.Key(); len(k) > 0 && k[0] == '$' {
				return mongoerr.New(mongoerr.DollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", k)
			}
		}
	}
	return nil
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
