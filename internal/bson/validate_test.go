package bson_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

func TestValidateTakesWhatIsWellFormed(t *testing.T) {
	documents := bsontest.Documents(3)
	rapid.Check(t, func(t *rapid.T) {
		doc := documents.Draw(t, "document")
		if err := bson.Validate(doc, 4); err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(doc)-1).Draw(t, "cut")
		if bson.Validate(doc[:cut], 4) == nil {
			t.Fatalf("%d of %d bytes are taken", cut, len(doc))
		}
		if bson.Validate(append(bytes.Clone(doc), 0), 4) == nil {
			t.Fatal("a byte too many is taken")
		}
	})
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct{ fault, doc string }{
		{"document of a wrong length", "\x06\x00\x00\x00\x00"},
		{"document without an end", "\x05\x00\x00\x00\x01"},
		{"key without an end", "\x08\x00\x00\x00\x0aab\x0a"},
		{"value of an unknown type or a wrong length", "\x08\x00\x00\x00\x20a\x00\x00"},
		{"boolean that is neither 0 nor 1", "\x09\x00\x00\x00\x08a\x00\x02\x00"},
		{"string without an end", "\x0e\x00\x00\x00\x02a\x00\x02\x00\x00\x00bb\x00"},
		{"code with scope that does not fit", "\x16\x00\x00\x00\x0fa\x00\x0e\x00\x00\x00\x09\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00"},
		{"nesting too deep", "\x15\x00\x00\x00\x03a\x00\x0d\x00\x00\x00\x03b\x00\x05\x00\x00\x00\x00\x00\x00"},
		{"value of an unknown type or a wrong length", "\x10\x00\x00\x00\x02a\x00\xff\xff\xff\x7fbbb\x00\x00"},
		{"value of an unknown type or a wrong length", "\x0c\x00\x00\x00\x05a\x00\xff\xff\xff\xff\x00"},
	} {
		err := bson.Validate([]byte(c.doc), 2)
		if err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %v, want %s", c.doc, err, c.fault)
		}
	}
}
