package config

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestReading: each key of a collection's reading is that of the nearest entry that has it.
func TestReading(t *testing.T) {
	cfg := parsed(t, `
backends: {rs: {uri: "mongodb://a"}, other: {uri: "mongodb://b"}}
reads: any
databases:
  db: {backend: other, read: {mode: nearest}, reads: own-writes}
  "*": {backend: rs, read: {mode: primaryPreferred}}
collections:
  db.laid: {hash: {field: u}, read: {mode: secondary, maxStaleness: 2m, tags: [{dc: east, disk: ssd}, {}]}}
  db.plain: {reads: causal}
`)
	for _, test := range []struct{ database, collection, want string }{
		{"db", "laid", `{"mode": "secondary","tags": [{"dc": "east","disk": "ssd"},{}],"maxStalenessSeconds": {"$numberLong":"120"}} 2`},
		{"db", "plain", `{"mode": "nearest"} 3`},
		{"db", "other", `{"mode": "nearest"} 2`},
		{"else", "c", `{"mode": "primaryPreferred"} 1`},
	} {
		r := cfg.Reading(test.database, test.collection)
		if got := fmt.Sprintf("%s %d", r.Preference, r.Reads); got != test.want {
			t.Errorf("%s.%s: %s, want %s", test.database, test.collection, got, test.want)
		}
	}
	if cfg.BackendFor("db") != "other" || cfg.Default != "rs" || len(cfg.Collections) != 1 || !cfg.Waits() {
		t.Errorf("parsed %+v", cfg)
	}
	if plain := parsed(t, "backends: {rs: {uri: \"mongodb://a\"}}\n"); plain.Waits() || plain.Reading("a", "b").Preference != nil {
		t.Errorf("without the keys: %+v", plain)
	}
}

// TestReadingRefused: what can't be, or has no meaning, is an error at its key.
func TestReadingRefused(t *testing.T) {
	const head = "backends: {rs: {uri: \"mongodb://a\"}, e: {embedded: d}}\ndatabases: {\"*\": rs, on: e}\n"
	for text, want := range map[string]string{
		head + "collections: {a.b: {read: {mode: never}}}":                                   "collections.a.b.read.mode",
		head + "collections: {a.b: {read: {}}}":                                              "collections.a.b.read",
		head + "collections: {a.b: {read: {mode: secondary, maxStaleness: 89s}}}":            "collections.a.b.read.maxStaleness",
		head + "collections: {a.b: {read: {mode: primary, maxStaleness: 90s}}}":              "collections.a.b.read.maxStaleness",
		head + "collections: {a.b: {read: {mode: primary, tags: [{}]}}}":                     "collections.a.b.read.tags",
		head + "collections: {a.b: {read: {mode: nearest, tags: {}}}}":                       "collections.a.b.read.tags",
		head + "collections: {a.b: {read: {mode: nearest, tags: [{a: [1]}]}}}":               "collections.a.b.read.tags.a",
		head + "collections: {a.b: {read: {mode: nearest, hedge: on}}}":                      "collections.a.b.read.hedge",
		head + "collections: {a.b: {reads: everything}}":                                     "collections.a.b.reads",
		head + "collections: {on.b: {reads: own-writes}}":                                    "collections.on.b.reads",
		head + "collections: {on.b: {hash: {field: u}, over: [e], read: {mode: secondary}}}": "collections.on.b.read",
		head + "collections: {a.b: {read: {mode: secondary}, keep: 1d}}":                     "collections.a.b",
		"backends: {e: {embedded: d}}\nreads: own-writes":                                    "reads",
		"backends: {e: {embedded: d}}\ndatabases: {a: {backend: e, reads: causal}}":          "databases.a.reads",
		"backends: {e: {uri: \"mongodb://a\"}}\ndatabases: {a: {read: {mode: nearest}}}":     "databases.a",
		"backends: {e: {uri: \"mongodb://a\"}}\ndatabases: {a: {backend: e, layout: b}}":     "databases.a.layout",
	} {
		_, err := Parse("f", []byte(text))
		if !reports(err, want) {
			t.Errorf("%s\ngives %v, nothing at %s", text, err, want)
		}
	}
}

// reports tells whether the errors of a file are about a key.
func reports(err error, key string) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && slices.ContainsFunc(joined.Unwrap(), func(err error) bool {
		var e *Error
		return errors.As(err, &e) && e.Key == key
	})
}
