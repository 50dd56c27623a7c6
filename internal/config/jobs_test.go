package config

import (
	"strings"
	"testing"
	"time"
)

func TestJobs(t *testing.T) {
	cfg, err := Parse("oxbow.yaml", []byte(`
jobs:
  old-mail:
    kind: purge
    on: im.offline_msg
    with: {strategy: ids, where: '{"flag": 1}', age: 30d, field: at}
    windows: ["22:00-08:00 Asia/Shanghai"]
    every: window
    limits: {documents: 5000, bytes: 10MiB}
    maxRun: 6h
    priority: 2
  scans:
    kind: kill
    with: {kinds: [remove], older: 30s, documents: 1000, action: kill, dryRun: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	mail, scans := cfg.JobOf("old-mail"), cfg.JobOf("scans")
	if mail == nil || scans == nil || cfg.JobOf("none") != nil {
		t.Fatalf("%+v", cfg.Jobs)
	}
	if !mail.EachWindow || len(mail.Windows) != 1 || mail.MaxRun != 6*time.Hour || mail.Documents != 5000 || mail.Bytes != 10<<20 || mail.Priority != 2 {
		t.Errorf("%+v", mail)
	}
	if got := mail.Parameters.String(); !strings.Contains(got, `"where": {"flag": {"$numberInt":"1"}}`) || !strings.Contains(got, `"age": {"$numberLong":"2592000000"}`) {
		t.Errorf("parameters: %s", got)
	}
	if got := scans.Parameters.String(); !strings.Contains(got, `"older": "30s"`) || !strings.Contains(got, `"kinds": ["remove"]`) || !strings.Contains(got, `"dryRun": true`) {
		t.Errorf("parameters: %s", got)
	}
}

// A job whose kind needs nothing of its own has an empty document of parameters.
func TestJobWithoutParameters(t *testing.T) {
	for _, text := range []string{"a: {kind: kill}", "a: {kind: kill, with: {}}", "a: {kind: purge, on: b.c}"} {
		cfg, err := Parse("oxbow.yaml", []byte("jobs:\n  "+text+"\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := cfg.Jobs[0].Parameters.String(); got != "{}" {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestJobErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: {on: b.c}":                                                      "oxbow.yaml:2:3: jobs.a: needs kind",
		"a: {kind: dance, on: b.c}":                                         "jobs.a.kind: must be one of purge, kill",
		"a: {kind: purge}":                                                  "jobs.a: needs on",
		"a: {kind: purge, on: b}":                                           "jobs.a.on: ",
		"a: {kind: purge, on: oxbow.c}":                                     "has the catalog",
		"a b: {kind: purge, on: b.c}":                                       "a job's name has letters",
		"a: {kind: purge, on: b.c, windows: [\"25:00-26:00\"]}":             `"25:00-26:00" is not a window`,
		"a: {kind: purge, on: b.c, every: window}":                          "jobs.a.every: window needs windows",
		"a: {kind: purge, on: b.c, every: 0s}":                              "jobs.a.every: must be once, window",
		"a: {kind: purge, on: b.c, with: {where: '{'}}":                     "jobs.a.with.where: must be a filter in JSON",
		"a: {kind: purge, on: b.c, with: {where: 'null'}}":                  "\"null\" is not one JSON document",
		"a: {kind: purge, on: b.c, with: {where: '{\"a\": 1} {\"b\": 2}'}}": "is not one JSON document",
		"a: {kind: purge, on: b.c, with: {where: '[]'}}":                    "\"[]\" is not one JSON document",
		"a: {kind: purge, on: b.c, with: {age: 500us}}":                     "jobs.a.with.age: ",
		"a: {kind: purge, on: b.c, with: {slice: 1us}}":                     "jobs.a.with.slice: ",
		"a: {kind: purge, on: b.c, with: {before: yesterday}}":              "jobs.a.with.before: must be a time",
		"a: {kind: purge, on: b.c, with: {speed: 9}}":                       "jobs.a.with.speed: is not a key here",
		"a: {kind: kill, with: {strategy: ids}}":                            "jobs.a.with.strategy: is not a key here",
		"a: {kind: purge, on: b.c, limits: {documents: 0}}":                 "jobs.a.limits.documents: must be a whole number",
		"a: {kind: purge, on: b.c, priority: 101}":                          "jobs.a.priority: must be a whole number from 1 to 100",
		"a: {kind: purge, on: b.c, when: now}":                              "jobs.a.when: is not a key here",
		"a: {kind: purge, on: b.c, with: {age: long}}":                      "jobs.a.with.age: ",
		"a: {kind: purge, on: b.c, with: {where: '{}'}, maxRun: \"-1\"}":    "jobs.a.maxRun: ",
	} {
		_, err := Parse("oxbow.yaml", []byte("jobs:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseFilter(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	if doc, err := ParseFilter(nested(mostFilterDepth)); err != nil || doc.Validate() != nil {
		t.Errorf("%v, %v", doc, err)
	}
	for text, want := range map[string]string{
		nested(mostFilterDepth + 1):   "deeper than 80 levels",
		nested(150):                   "deeper than 80 levels",
		nested(150) + " {}":           "… is not one JSON document",
		strings.Repeat("größer", 100): "… is not one JSON document",
		`{"a": 1} {"b": 2}`:           "is not one JSON document",
		"null":                        "is not one JSON document",
		`{"a": {"$oid": "12"}}`:       "ObjectID",
		"{\"a\": \"" + "\\u0000\", \"a\\u0000b\": 1}": "null bytes",
	} {
		if _, err := ParseFilter(text); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "…\"", "…"), want) || len(err.Error()) > 300 {
			t.Errorf("%.50s: %v, want %s", text, err, want)
		}
	}
}
