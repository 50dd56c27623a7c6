package command_test

import (
	"strings"
	"testing"

	"oxbow/internal/mongoerr"
	"oxbow/test/inprocess"
)

// TestUnknownCommands: a command outside the table reaches a server only where neither partitions nor the catalog lie, unless it is known to reach neither.
// The server here knows none of them, and says so: CommandNotFound is a command that was passed on.
func TestUnknownCommands(t *testing.T) {
	g := inprocess.Open(t, `
backends: {local: {embedded: local}, home: {uri: "`+inprocess.Serve(t)+`"}, parts: {uri: "`+inprocess.Serve(t)+`"}, plain: {uri: "`+inprocess.Serve(t)+`"}}
databases: {p: parts, q: plain, e: local, "*": home}
catalog: kept
collections:
  p.split: {hash: {field: k, count: 2}}
`)
	if code, text := g.Code(t, "p", `{"create": "split"}`); code != 0 {
		t.Fatalf("create: %s: %s", code, text)
	}

	unknown := []string{
		`{"mapReduce": "c", "map": {"$code": "f"}, "reduce": {"$code": "f"}, "out": {"replace": "split_0"}}`,
		`{"mapReduce": "split_0", "map": {"$code": "f"}, "reduce": {"$code": "f"}, "out": {"inline": 1}}`,
		`{"mapReduce": "c", "map": {"$code": "f"}, "reduce": {"$code": "f"}, "out": {"merge": "collections", "db": "kept"}}`,
		`{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}, "multi": true}], "nsInfo": [{"ns": "p.split_0"}]}`,
		`{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "kept.partitions"}]}`,
		`{"applyOps": [{"op": "d", "ns": "p.split_0", "o": {"_id": 1}}]}`,
		`{"applyOps": [{"op": "c", "ns": "p.$cmd", "o": {"dropDatabase": 1}}]}`,
		`{"cloneCollectionAsCapped": "c", "toCollection": "split_1", "size": 1}`,
		`{"moveChunk": "p.split_0", "find": {"_id": 1}, "to": "s"}`,
		`{"movePrimary": "p", "to": "s"}`,
		`{"shutdown": 1}`,
		`{"somethingNew": {"$uuid": "9f3c0000-0000-4000-8000-000000000001"}}`,
	}
	about := []string{`{"replSetGetStatus": 1}`, `{"connPoolStats": 1}`, `{"compact": "c"}`, `{"collMod": "c", "validationLevel": "off"}`, `{"convertToCapped": "c", "size": 1}`}
	reaching := map[string]mongoerr.Code{
		`{"compact": "split_0"}`:                                         mongoerr.CommandNotSupported,
		`{"convertToCapped": "split_1", "size": 1}`:                      mongoerr.CommandNotSupported,
		`{"collMod": "split", "validationLevel": "off"}`:                 mongoerr.CommandNotSupported,
		`{"collMod": "c", "viewOn": "split"}`:                            mongoerr.CommandNotSupported,
		`{"compact": {"$uuid": "9f3c0000-0000-4000-8000-000000000001"}}`: mongoerr.InvalidNamespace,
		`{"create": "v", "viewOn": "split", "pipeline": []}`:             mongoerr.CommandNotSupported,
	}
	for _, command := range unknown {
		for db, want := range map[string]mongoerr.Code{
			"p": mongoerr.CommandNotSupported, "other": mongoerr.CommandNotSupported, "admin": mongoerr.CommandNotSupported,
			"q": mongoerr.CommandNotFound, "e": mongoerr.CommandNotFound, "kept": mongoerr.Unauthorized,
		} {
			if code, text := g.Code(t, db, command); code != want {
				t.Errorf("%s on %s: %s: %s, not %s", command, db, code, text, want)
			}
		}
	}
	for _, command := range about {
		for _, db := range []string{"p", "q", "other"} {
			if code, text := g.Code(t, db, command); code != mongoerr.CommandNotFound || !strings.HasPrefix(text, "no such command") {
				t.Errorf("%s on %s: %s: %s", command, db, code, text)
			}
		}
	}
	for command, want := range reaching {
		if code, text := g.Code(t, "p", command); code != want {
			t.Errorf("%s: %s: %s, not %s", command, code, text, want)
		}
	}
}

// TestSideCollections: a pipeline that a backend would run whole does not read the catalog, nor a collection with a layout as if it were empty.
func TestSideCollections(t *testing.T) {
	g := inprocess.Open(t, "backends: {local: {embedded: local}}\ncollections: {d.split: {hash: {field: k, count: 2}}}\n")
	for _, c := range []struct {
		db, command string
		want        mongoerr.Code
	}{
		{"d", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": {"db": "oxbow", "coll": "partitions"}, "as": "x", "pipeline": []}}], "cursor": {}}`, mongoerr.Unauthorized},
		{"e", `{"aggregate": "c", "pipeline": [{"$facet": {"a": [{"$lookup": {"from": {"db": "oxbow", "coll": "x"}, "as": "x"}}]}}], "cursor": {}}`, mongoerr.Unauthorized},
		{"d", `{"explain": {"aggregate": "c", "pipeline": [{"$lookup": {"from": {"db": "oxbow", "coll": "x"}, "as": "x", "pipeline": []}}], "cursor": {}}}`, mongoerr.Unauthorized},
		{"d", `{"aggregate": 1, "pipeline": [{"$documents": []}, {"$unionWith": "split"}], "cursor": {}}`, mongoerr.CommandNotSupported},
		{"e", `{"aggregate": 1, "pipeline": [{"$documents": []}, {"$lookup": {"from": {"db": "d", "coll": "split"}, "as": "x"}}], "cursor": {}}`, mongoerr.CommandNotSupported},
		{"d", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "split", "localField": "a", "foreignField": "b", "as": "x"}}], "cursor": {}}`, 0},
	} {
		if code, text := g.Code(t, c.db, c.command); code != c.want {
			t.Errorf("%s: %s: %s, not %s", c.command, code, text, c.want)
		}
	}
}
