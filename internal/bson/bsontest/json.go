package bsontest

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// Doc returns the document that text is in relaxed Extended JSON; it fails the test if text is none.
func Doc(t testing.TB, text string) bson.Document {
	t.Helper()
	var raw driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		t.Fatalf("Extended JSON %s: %v", text, err)
	}
	return bson.Document(raw)
}

// Value returns the value that text is in relaxed Extended JSON.
func Value(t testing.TB, text string) bson.Value {
	t.Helper()
	v, ok := bson.Get(Doc(t, `{"v": `+text+`}`), "v")
	if !ok {
		t.Fatalf("Extended JSON %s has no value", text)
	}
	return v
}
