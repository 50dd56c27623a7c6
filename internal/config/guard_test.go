package config

import (
	"fmt"
	"testing"
)

// TestGuard: each key of a collection's guard is that of the nearest entry that has it; where any entry is there, writes are refused unless it says
// otherwise, and reads are not looked at.
func TestGuard(t *testing.T) {
	cfg := parsed(t, `
backends: {rs: {uri: "mongodb://a"}, e: {embedded: d}}
guard: {documents: 500, find: log}
databases:
  db: {backend: rs, guard: {find: send, to: {mode: secondary, tags: [{use: reports}]}}}
  "*": {backend: e, guard: {update: allow}}
collections:
  db.laid: {hash: {field: u}, guard: {documents: 7, remove: log}}
  db.plain: {guard: {find: refuse}}
`)
	for _, test := range []struct{ database, collection, want string }{
		{"db", "laid", `7 log allow send allow allow allow {"mode": "secondary","tags": [{"use": "reports"}]}`},
		{"db", "plain", `500 refuse allow refuse allow allow allow {"mode": "secondary","tags": [{"use": "reports"}]}`},
		{"else", "c", `500 refuse allow log allow allow allow `},
	} {
		g := cfg.Guard(test.database, test.collection)
		got := fmt.Sprint(g.Documents)
		for _, c := range guardedCommands {
			got += " " + g.Of(c.command).String()
		}
		if got = fmt.Sprintf("%s %s", got, g.Preference); got != test.want {
			t.Errorf("%s.%s: %s, want %s", test.database, test.collection, got, test.want)
		}
		if g.Of("insert").Looks() {
			t.Errorf("%s.%s: inserts are guarded", test.database, test.collection)
		}
	}
	if len(cfg.Collections) != 1 || !cfg.Guards("delete") || !cfg.Guards("find") || cfg.Guards("count") || cfg.Guards("insert") {
		t.Errorf("parsed %+v", cfg)
	}
	plain := parsed(t, "")
	if g := plain.Guard("a", "b"); plain.Guards("delete") || g.Of("delete").Looks() {
		t.Errorf("without the key: %+v", g)
	}
	one := parsed(t, "collections: {a.b: {guard: {}}}")
	if g := one.Guard("a", "b"); !g.Of("delete").Refuses() || g.Of("find").Looks() || g.Documents != DefaultGuarded {
		t.Errorf("with an empty guard: %+v", g)
	}
	if g := one.Guard("a", "c"); g.Of("delete").Looks() {
		t.Errorf("beside a guarded collection: %+v", g)
	}
}

// TestGuardRefused: what can't be is an error at its key.
func TestGuardRefused(t *testing.T) {
	const head = "backends: {rs: {uri: \"mongodb://a\"}, e: {embedded: d}}\ndatabases: {\"*\": rs, on: e}\n"
	for text, want := range map[string]string{
		head + "guard: {find: forbid}":                                               "guard.find",
		head + "guard: {remove: send, to: {mode: secondary}}":                        "guard.remove",
		head + "guard: {find: send}":                                                 "guard.find",
		head + "guard: {documents: 0}":                                               "guard.documents",
		head + "guard: {insert: refuse}":                                             "guard.insert",
		head + "guard: {to: {mode: never}}":                                          "guard.to.mode",
		head + "collections: {on.b: {guard: {find: send, to: {mode: nearest}}}}":     "collections.on.b.guard.find",
		head + "collections: {on.b: {guard: {to: {mode: nearest}}}}":                 "collections.on.b.guard.to",
		"backends: {e: {embedded: d}}\nguard: {count: send, to: {mode: secondary}}":  "guard.count",
		"backends: {e: {embedded: d}}\ndatabases: {on: {backend: e, guard: refuse}}": "databases.on.guard",
		"backends: {e: {embedded: d}}\ncollections: {a.b: {guard: {}, keep: 1d}}":    "collections.a.b",
	} {
		if _, err := Parse("f", []byte(text)); !reports(err, want) {
			t.Errorf("%s\ngives %v, nothing at %s", text, err, want)
		}
	}
}
