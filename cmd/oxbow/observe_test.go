package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/survey"
)

// TestObserve: of a gateway that is well nothing is found, with and without a layout; what is wrong is, in the text, in JSON and on the page.
func TestObserve(t *testing.T) {
	uri := openGateway(t, "collections:\n  fla.log: {time: {field: time, every: day}}\n")
	db := database(t, uri, "fla")
	for i := range 50 {
		at := time.Now().Add(-time.Duration(i) * time.Minute)
		for _, name := range []string{"log", "plain"} {
			if _, err := db.Collection(name).InsertOne(t.Context(), bson.D{{Key: "time", Value: at}, {Key: "n", Value: i}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	observed := func(args ...string) (string, survey.Report) {
		t.Helper()
		args = append([]string{"observe", "--uri", uri, "--for", "10ms", "--pace", "0s"}, args...)
		text, stderr, err := oxbowCommand(t, nil, args...)
		if err != nil || stderr != "" {
			t.Fatalf("%v %s", err, stderr)
		}
		doc, _, err := oxbowCommand(t, nil, append(args, "--json")...)
		if err != nil {
			t.Fatal(err)
		}
		var r struct{ Findings []survey.Finding }
		if err := json.Unmarshal([]byte(doc), &r); err != nil {
			t.Fatal(err)
		}
		return text, survey.Report{Findings: r.Findings}
	}
	text, r := observed()
	if len(r.Findings) > 0 {
		t.Errorf("found on a gateway that is well: %+v", r.Findings)
	}
	wantText(t, text, "nothing found", "fla.log", "fla.plain", "50", "time (date)", "not reported")

	if _, err := db.Collection("plain").InsertOne(t.Context(), bson.D{{Key: "time", Value: "noon"}}); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "report.html")
	text, r = observed("--html", page, "--ns", "fla.plain")
	if len(r.Findings) != 1 || r.Findings[0].ID != "time-types" || r.Findings[0].About != "fla.plain" {
		t.Errorf("found %+v", r.Findings)
	}
	wantText(t, text, "time-types", "string (1)")
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, string(html), "<!doctype html>", "time-types", "fla.plain", "nothing was changed")
}
