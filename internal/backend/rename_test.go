package backend

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func TestRenameError(t *testing.T) {
	physical := Namespace{Database: "fla", Collection: "log170605"}
	for message, want := range map[string]string{
		"error processing query: ns=fla.log170605 Tree: x": "error processing query: ns=fla.log Tree: x",
		"fla.log170605": "fla.log",
		"Collection 'fla.log170605' does not exist to validate.":               "Collection 'fla.log' does not exist to validate.",
		"ns not found: fla.log170605.":                                         "ns not found: fla.log.",
		"fla.log1706051 fla.log170605_2 fla.log170605.x xfla.log170605":        "fla.log1706051 fla.log170605_2 fla.log170605.x xfla.log170605",
		"fla.log170605, fla.log170605":                                         "fla.log, fla.log",
		"fla.log170605fla.log170605":                                           "fla.log170605fla.log170605",
		"collection: fla.log170605 index: a dup key: { a: \"fla.log170605\" }": "collection: fla.log index: a dup key: { a: \"fla.log170605\" }",
		"another error": "another error",
		"":              "",
	} {
		if got := RenameError(mongoerr.New(mongoerr.BadValue, "%s", message), physical, "fla.log"); got.Message != want {
			t.Errorf("%q became %q", message, got.Message)
		}
	}
	info := encode(t, driver.D{{Key: "ns", Value: "fla.log170605"}, {Key: "keyValue", Value: driver.D{{Key: "a", Value: "fla.log170605"}}}})
	before := mongoerr.Error{Code: mongoerr.StaleConfig, Info: info}
	got := RenameError(&before, physical, "fla.log")
	want := encode(t, driver.D{{Key: "ns", Value: "fla.log"}, {Key: "keyValue", Value: driver.D{{Key: "a", Value: "fla.log170605"}}}})
	if string(got.Info) != string(want) || string(before.Info) != string(info) {
		t.Errorf("the error's fields are %s", got.Info)
	}
}

func encode(t *testing.T, doc driver.D) bson.Document {
	t.Helper()
	out, err := driver.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRenameFields(t *testing.T) {
	physical := Namespace{Database: "fla", Collection: "log170605"}
	part := func(ns string) bson.Document {
		return encode(t, driver.D{
			{Key: "queryPlanner", Value: driver.D{{Key: "namespace", Value: ns}, {Key: "parsedQuery", Value: driver.D{{Key: "a", Value: "fla.log170605"}}}}},
			{Key: "stages", Value: driver.A{driver.D{{Key: "$cursor", Value: driver.D{{Key: "namespace", Value: ns}}}}, int32(1)}},
		})
	}
	if got := RenameFields(part("fla.log170605"), physical, "fla.log"); string(got) != string(part("fla.log")) {
		t.Errorf("renamed: %s", got)
	}
	if other := part("fla.other"); string(RenameFields(other, physical, "fla.log")) != string(other) {
		t.Error("another name was changed")
	}
}
