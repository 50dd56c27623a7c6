package equivalence

import (
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// TestNames: no reply, and no error, speaks of a partition, but for those that are asked for partitions: a client knows its collection only. The partitions lie on
// the engine and on a server.
func TestNames(t *testing.T) {
	g := inprocess.Open(t, "backends: {a: {embedded: a}, r: {uri: '"+inprocess.Serve(t)+"'}}\ndatabases: {'*': a}\n"+
		"collections:\n  test.c: {time: {field: t, every: day}, over: [a, r]}\n  apart.c: {time: {field: t, every: day, as: database}, over: [r, a]}\n")
	for _, db := range []string{"test", "apart"} {
		run := func(text string) string {
			var command bson.D
			if err := bson.UnmarshalExtJSON([]byte(text), false, &command); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: db}))
			if err != nil {
				t.Fatal(err)
			}
			reply, err := g.Run(t.Context(), &backend.Request{Body: body})
			if err != nil {
				t.Fatal(err)
			}
			return reply.String()
		}
		run(`{"insert": "c", "documents": [{"_id": 1, "u": 1, "t": {"$date": "2024-02-28T00:00:00Z"}}, {"_id": 2, "u": 2, "t": {"$date": "2024-02-29T00:00:00Z"}}, {"_id": 3, "u": 2, "t": {"$date": "2024-02-29T00:00:00Z"}}]}`)
		partition := regexp.MustCompile(`2024_?02_?2[89]`)
		if !partition.MatchString(run(`{"listPartitions": "c"}`)) {
			t.Fatalf("partitions have other names: %s", run(`{"listPartitions": "c"}`))
		}
		for _, command := range []string{
			`{"find": "c"}`,
			`{"find": "c", "hint": "none"}`,
			`{"find": "c", "sort": {"u": 1}, "hint": "none"}`,
			`{"find": "c", "filter": {"t": {"$date": "2024-02-28T00:00:00Z"}}, "hint": "none"}`,
			`{"find": "c", "filter": {"t": {"$date": "2024-02-29T00:00:00Z"}}, "min": {"u": 1}, "hint": {"u": 1}}`,
			`{"count": "c", "hint": "none"}`,
			`{"distinct": "c", "key": "u", "hint": "none"}`,
			`{"aggregate": "c", "pipeline": [{"$group": {"_id": 1}}], "cursor": {}, "hint": "none"}`,
			`{"aggregate": "c", "pipeline": [{"$match": {"t": {"$date": "2024-02-29T00:00:00Z"}}}], "cursor": {}, "hint": "none"}`,
			`{"explain": {"find": "c", "hint": "none"}}`,
			`{"insert": "c", "documents": [{"_id": 1, "t": {"$date": "2024-02-28T00:00:00Z"}}]}`,
			`{"insert": "c", "ordered": false, "documents": [{"_id": 1, "t": {"$date": "2024-02-28T00:00:00Z"}}, {"_id": 2, "t": {"$date": "2024-02-29T00:00:00Z"}}]}`,
			`{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"_id": 1}}, "multi": true}]}`,
			`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}, "hint": "none", "multi": true}]}`,
			`{"update": "c", "updates": [{"q": {"_id": 1, "t": {"$date": "2024-02-28T00:00:00Z"}}, "u": {"$set": {"x": 1}}, "hint": "none"}]}`,
			`{"delete": "c", "deletes": [{"q": {}, "limit": 0, "hint": "none"}]}`,
			`{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1, "hint": "none"}]}`,
			`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"_id": 1}}}`,
			`{"findAndModify": "c", "query": {"_id": 1}, "remove": true, "hint": "none"}`,
			`{"findAndModify": "c", "query": {"_id": 9, "t": {"$date": "2024-02-28T00:00:00Z"}}, "update": {"$set": {"_id": 1}}, "upsert": true}`,
			`{"createIndexes": "c", "indexes": [{"key": {"t": 1, "u": 1}, "name": "unique", "unique": true}]}`,
			`{"createIndexes": "c", "indexes": [{"key": {"u": 1}, "name": "unique", "unique": true}]}`,
			`{"createIndexes": "c", "indexes": [{"key": {"u": "bad"}, "name": "bad"}]}`,
			`{"dropIndexes": "c", "index": "none"}`,
			`{"listIndexes": "c"}`,
			`{"collStats": "c"}`,
			`{"validate": "c"}`,
			`{"listCollections": 1}`,
			`{"find": "c", "readConcern": {"level": "none"}}`,
			`{"count": "c", "query": {"$expr": {"$divide": ["$u", 0]}}}`,
			`{"find": "c", "filter": {"$expr": {"$divide": ["$u", 0]}}}`,
		} {
			if reply := run(command); partition.MatchString(strings.ReplaceAll(reply, `"2024`, "")) {
				t.Errorf("%s: %s: %s", db, command, reply)
			}
		}
		explained := run(`{"explain": {"find": "c"}, "verbosity": "executionStats"}`)
		if !strings.Contains(explained, `"namespace": "`+db+`.c"`) || regexp.MustCompile(`"namespace": "[^"]*2024`).MatchString(explained) {
			t.Errorf("%s: explain gives namespaces of partitions: %s", db, explained)
		}
	}
}
