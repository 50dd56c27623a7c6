package config

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const head = "backends: {local: {embedded: d}, other: {embedded: e}}\ndatabases: {\"*\": local}\ncollections:\n"
	const before = head + "  a.b: {time: {field: t, every: day, unit: s}, hash: {field: u, count: 4}, keep: 1d}\n  a.c: {hash: {field: u}}\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", before, ""},
		{"what may change", head + "  a.b: {time: {field: t, every: hour, unit: s, zone: Asia/Tokyo, as: database}, hash: {field: u, count: 4}, keep: 2d, hold: 0, ahead: 5, late: recreate, over: [other]}\n  a.c: {hash: {field: u}}\n  a.new: {hash: {field: x}}\n", ""},
		{"an entry without partitions goes", head + "  a.b: {time: {field: t, every: day, unit: s}, hash: {field: u, count: 4}, keep: 1d}\n", ""},
		{"an entry goes", head + "  a.c: {hash: {field: u}}\n", "collections.a.b: the entry can't be removed"},
		{"count", strings.Replace(before, "count: 4", "count: 8", 1), "collections.a.b.hash.count: it can't change from 4 to 8"},
		{"hash field", strings.Replace(before, "field: u, count", "field: v, count", 1), "collections.a.b.hash.field: it can't change from u to v"},
		{"time field", strings.Replace(before, "field: t", "field: x", 1), "collections.a.b.time.field: it can't change from t to x"},
		{"unit", strings.Replace(before, "unit: s", "unit: ms", 1), "collections.a.b.time.unit: it can't change from s to ms"},
		{"no hash any more", strings.Replace(before, "hash: {field: u, count: 4}, ", "", 1), "collections.a.b.hash: a hash layout can't be added or removed"},
		{"no time any more", head + "  a.b: {hash: {field: u, count: 4}}\n  a.c: {hash: {field: u}}\n", "collections.a.b.time: a time layout can't be added or removed"},
		{"a backend goes", "backends: {local: {embedded: d}}\n" + before[strings.Index(before, "collections"):], "backends.other: a backend can't be removed"},
		{"a backend changes", strings.Replace(before, "embedded: e", "embedded: f", 1), "backends.other: a backend can't change"},
		{"the default backend changes", strings.Replace(before, "\"*\": local", "\"*\": other", 1), "the default backend holds the catalog"},
		{"the address changes", "listen: 127.0.0.1:1\n" + before, "listen: the address can't change"},
	} {
		err := Diff(parsed(t, before), parsed(t, c.text), func(ns string) bool { return ns == "a.b" })
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	cfg := parsed(t, `
backends: {local: {embedded: d}, other: {embedded: e}}
databases: {"*": local}
collections:
  a.log:  {time: {field: t, every: day}, keep: 30d, hold: 1d}
  a.deep: {time: {field: t, every: minute}, hash: {field: u, count: 64}, keep: 1d}
  a.wide: {time: {field: t, every: hour}, hash: {field: u, count: 64}, keep: 10d, over: [local, other]}
  a.ever: {time: {field: t, every: month}}
  a.hash: {hash: {field: u}}
`)
	for ns, want := range map[string]Cost{
		"a.log":  {Bounded: true, Ranges: 34, Partitions: 34, PerBackend: 34, Files: 34 * 4},
		"a.wide": {Bounded: true, Ranges: 244, Partitions: 15616, PerBackend: 7808, Files: 7808 * 4},
		"a.hash": {Bounded: true, Ranges: 1, Partitions: 64, PerBackend: 64, Files: 64 * 4},
		"a.ever": {Ranges: 4, Partitions: 4, PerBackend: 4, Files: 16},
	} {
		if got := cfg.Collection(ns).Cost(2); got != want {
			t.Errorf("%s: %+v, want %+v", ns, got, want)
		}
	}
	var got []string
	for _, a := range cfg.Check(nil) {
		if a.Refused {
			got = append(got, "refused "+a.Collection)
		} else {
			got = append(got, a.Collection)
		}
	}
	if want := "a.deep"; !strings.Contains(strings.Join(got, " "), want) || strings.Contains(strings.Join(got, " "), "a.log") || strings.Contains(strings.Join(got, " "), "a.hash") {
		t.Errorf("findings on %v", got)
	}
}
