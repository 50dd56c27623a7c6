package bson_test

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

// corpus gives a fuzzer documents of every type to begin with.
func corpus(f *testing.F) [][]byte {
	return [][]byte{
		bsontest.Doc(f, `{}`),
		bsontest.Doc(f, logLine),
		bsontest.Doc(f, `{"a": [1, 1.5, {"$numberLong": "9007199254740993"}, {"$numberDecimal": "1E-6176"}, {"$numberDecimal": "NaN"}, null, true]}`),
		bsontest.Doc(f, `{"a": {"$code": "f", "$scope": {"x": 1}}, "b": {"$code": "g"}, "c": {"$symbol": "s"}, "d": {"$undefined": true}}`),
		bsontest.Doc(f, `{"a": {"$minKey": 1}, "b": {"$maxKey": 1}, "c": {"$regularExpression": {"pattern": "a", "options": "i"}}}`),
		bsontest.Doc(f, `{"a": {"$dbPointer": {"$ref": "c", "$id": {"$oid": "64f1a2b3c4d5e6f708192a3b"}}}, "b": {"$binary": {"base64": "AAA=", "subType": "02"}}}`),
		bsontest.Doc(f, `{"a": {"$date": "2017-06-05T00:00:00Z"}, "b": {"$timestamp": {"t": 1, "i": 2}}, "c": {"$numberDecimal": "-1E400"}}`),
	}
}

// FuzzValidate holds Validate against the driver's own validation, and everything that reads documents against arbitrary bytes.
func FuzzValidate(f *testing.F) {
	for _, doc := range corpus(f) {
		f.Add(doc)
		f.Add(doc[:len(doc)-1])
	}
	path := bson.ParsePath("a.0.b")
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := bson.Validate(doc, bson.MaxDepth)
		v := bson.Value{Type: bson.TypeDocument, Data: doc}
		if key := bson.AppendKey(nil, v, false); err == nil && bson.KeyLen(key, false) != len(key) {
			t.Fatalf("KeyLen is %d, the key has %d bytes", bson.KeyLen(key, false), len(key))
		}
		if bson.Compare(v, v) != 0 {
			t.Fatal("a document is not equal to itself")
		}
		path.Walk(doc, true, func(bson.Value, bool, bool, int) bool { return true })
		path.Lookup(doc)
		if err == nil {
			if err := driver.Raw(doc).Validate(); err != nil {
				t.Fatalf("the driver refuses what Validate takes: %v", err)
			}
			it := bson.Elements(doc)
			for it.Next() {
			}
			if it.Err() != nil {
				t.Fatal("the iterator refuses what Validate takes")
			}
		}
	})
}

// FuzzKeyOrder holds keys against Compare for the values of two arbitrary documents.
func FuzzKeyOrder(f *testing.F) {
	docs := corpus(f)
	for i, a := range docs {
		f.Add(a, docs[(i+1)%len(docs)])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if bson.Validate(a, bson.MaxDepth) != nil || bson.Validate(b, bson.MaxDepth) != nil {
			return
		}
		checkKeys(t, bson.Value{Type: bson.TypeDocument, Data: a}, bson.Value{Type: bson.TypeDocument, Data: b})
		x, y := bson.Elements(a), bson.Elements(b)
		for x.Next() && y.Next() {
			checkKeys(t, x.Value(), y.Value())
		}
	})
}

// FuzzKeyLen reads arbitrary bytes as keys.
func FuzzKeyLen(f *testing.F) {
	for _, doc := range corpus(f) {
		f.Add(bson.AppendKey(nil, bson.Value{Type: bson.TypeDocument, Data: doc}, false))
		f.Add(bson.AppendKey(nil, bson.Value{Type: bson.TypeDocument, Data: doc}, true))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		for _, desc := range []bool{false, true} {
			if n := bson.KeyLen(key, desc); n > len(key) || n > 0 && bson.KeyLen(key[:n], desc) != n {
				t.Fatalf("KeyLen is %d of %d bytes", n, len(key))
			}
		}
	})
}
