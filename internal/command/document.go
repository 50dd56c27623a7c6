package command

import (
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// emptyDocument is {}.
var emptyDocument = bson.Document{5, 0, 0, 0, 0}

// appendDocuments appends an array of documents.
func appendDocuments(dst []byte, key string, docs []bson.Document) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, key)
	for i, doc := range docs {
		dst = bsoncore.AppendDocumentElement(dst, index(i), doc)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// appendArray appends an array of strings.
func appendArray(dst []byte, key string, items []string) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, key)
	for i, s := range items {
		dst = bsoncore.AppendStringElement(dst, index(i), s)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// index is the key of an array's element.
func index(i int) string { return strconv.Itoa(i) }

// appendCount appends a number as an int where it fits, as MongoDB does, else as a long.
func appendCount(dst []byte, key string, n int64) []byte {
	if n > math.MaxInt32 {
		return bsoncore.AppendInt64Element(dst, key, n)
	}
	return bsoncore.AppendInt32Element(dst, key, int32(n))
}

// nameOf returns a document's name, or "".
func nameOf(doc bson.Document) string {
	v, _ := bson.Get(doc, "name")
	s, _ := v.StringValueOK()
	return s
}

// matching returns the documents that a filter matches.
func matching(docs []bson.Document, filter *query.Filter) ([]bson.Document, error) {
	var out []bson.Document
	for _, doc := range docs {
		ok, err := filter.Match(doc)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, doc)
		}
	}
	return out, nil
}

// namesOnly keeps name and type.
func namesOnly(docs []bson.Document) []bson.Document {
	out := make([]bson.Document, len(docs))
	for i, doc := range docs {
		at, dst := bsoncore.AppendDocumentStart(nil)
		it := bson.Elements(doc)
		for it.Next() {
			if k := string(it.Key()); k == "name" || k == "type" {
				dst = append(dst, it.Raw()...)
			}
		}
		out[i], _ = bsoncore.AppendDocumentEnd(dst, at)
	}
	return out
}

// isTrue takes booleans and numbers, as MongoDB's lenient booleans do.
func isTrue(v bson.Value) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	f, ok := v.AsFloat64OK()
	return ok && f != 0
}

// truthy reports whether a document has a field that is true.
func truthy(doc bson.Document, key string) bool {
	v, ok := bson.Get(doc, key)
	return ok && isTrue(v)
}

// seconds is the whole seconds of a duration.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }
