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

// JSON returns doc as relaxed Extended JSON, or the reason why it has none.
func JSON(doc bson.Document) string {
	out, err := driver.MarshalExtJSON(driver.Raw(doc), false, false)
	if err != nil {
		return "no JSON: " + err.Error()
	}
	return string(out)
}
