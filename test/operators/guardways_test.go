package operators

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestGuardWaysRound: what reads a collection or an index as a whole is refused in whatever way it is written, and what an index narrows is not.
func TestGuardWaysRound(t *testing.T) {
	const rules = "guard: {documents: 50, find: refuse, count: refuse, aggregate: refuse, distinct: refuse}\n"
	behind, _ := open(t, "catalog: behind\n")
	for name, client := range map[string]*mongo.Client{
		"plain":  clientOf(t, "", rules),
		"hash":   clientOf(t, "", rules+"collections: {im.msg: {hash: {field: uid, count: 4}}}\n"),
		"remote": clientOf(t, fmt.Sprintf("{rs: {uri: %q}}", behind.URI()), rules),
	} {
		t.Run(name, func(t *testing.T) { testGuardWaysRound(t, client.Database("im").Collection("msg")) })
	}
}

func testGuardWaysRound(t *testing.T, c *mongo.Collection) {
	fill(t, c, 400)
	for _, key := range []string{"flag", "text"} {
		if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: key, Value: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		`{"find": "msg", "filter": {"flag": 1}}`,
		`{"find": "msg", "filter": {"$or": [{"flag": 1}, {"text": "x"}]}}`,
		`{"find": "msg", "filter": {"text": {"$regex": "^x"}}}`,
		`{"find": "msg", "filter": {"other": 1, "flag": {"$in": [1, 2]}}}`,
		`{"find": "msg", "filter": {"_id": 5, "other": 1}}`,
		`{"find": "msg", "sort": {"flag": 1}, "limit": 1}`,
		`{"distinct": "msg", "key": "flag", "query": {"flag": 3}}`,
		`{"distinct": "msg", "key": "other", "query": {"_id": 5}}`,
		`{"findAndModify": "msg", "query": {"flag": 100000}, "update": {"$set": {"seen": 1}}}`,
		`{"findAndModify": "msg", "query": {"_id": 100000, "other": 1}, "remove": true}`,
		`{"explain": {"find": "msg", "filter": {"other": 1}}, "verbosity": "queryPlanner"}`,
		`{"explain": {"find": "msg", "filter": {"flag": 1}}, "verbosity": "executionStats"}`,
		`{"explain": {"find": "msg", "filter": {"other": 1}}, "verbosity": "executionStats", "comment": "oxbow:allow-scan"}`,
	} {
		if err := runText(t, c, command); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	for _, command := range []string{
		`{"find": "msg", "filter": {"$or": [{"flag": 1}, {"other": 1}]}}`,
		`{"find": "msg", "filter": {"flag": {"$ne": 5}}}`,
		`{"find": "msg", "filter": {"flag": {"$nin": [5, 6]}}}`,
		`{"find": "msg", "filter": {"flag": {"$exists": true}}}`,
		`{"find": "msg", "filter": {"text": {"$regex": "x"}}}`,
		`{"find": "msg", "filter": {"other": 1}, "hint": "flag_1"}`,
		`{"find": "msg", "filter": {"other": 1}, "hint": {"_id": 1}}`,
		`{"find": "msg", "filter": {"_id": 5}, "hint": {"$natural": 1}}`,
		`{"find": "msg", "filter": {"$expr": {"$eq": ["$other", 1]}}}`,
		`{"find": "msg", "filter": {"other": 1}, "comment": {"why": "oxbow:allow-scan"}}`,
		`{"find": "msg", "filter": {"other": 1, "$comment": "oxbow:allow-scan"}}`,
		`{"find": "msg", "filter": {"other": 1}, "limit": 1, "singleBatch": true}`,
		`{"count": "msg", "query": {"other": {"$ne": 5}}}`,
		`{"aggregate": "msg", "pipeline": [{"$match": {"other": 1}}], "cursor": {}}`,
		`{"distinct": "msg", "key": "flag", "query": {"other": 1}}`,
		`{"distinct": "msg", "key": "other"}`,
		`{"findAndModify": "msg", "query": {"other": 1}, "update": {"$set": {"seen": 1}}}`,
		`{"findandmodify": "msg", "query": {"other": 1}, "remove": true}`,
		`{"findAndModify": "msg", "sort": {"other": 1}, "remove": true}`,
		`{"explain": {"find": "msg", "filter": {"other": 1}}, "verbosity": "executionStats"}`,
		`{"explain": {"count": "msg", "query": {"other": 1}}}`,
		`{"explain": {"distinct": "msg", "key": "other", "query": {"other": 1}}, "verbosity": "executionStats"}`,
		`{"explain": {"findandmodify": "msg", "query": {"other": 1}, "remove": true}, "verbosity": "executionStats"}`,
		`{"explain": {"delete": "msg", "deletes": [{"q": {"other": 1}, "limit": 0}]}, "verbosity": "allPlansExecution"}`,
		`{"update": "msg", "ordered": false, "updates": [{"q": {"flag": 1}, "u": {"$set": {"seen": 1}}, "multi": true, "hint": "none_such"},
			{"q": {"other": 1}, "u": {"$set": {"seen": 1}}, "multi": true}]}`,
	} {
		wantRefused(t, command, runText(t, c, command), "im.msg")
	}
	wantRefused(t, "distinct", runText(t, c, `{"distinct": "msg", "key": "other", "query": {"uid2": 3}}`), `{"uid2": 1, "other": 1}`)
	wantRefused(t, "a hint", runText(t, c, `{"find": "msg", "filter": {"other": 1}, "hint": "flag_1"}`), "a whole index over 400 documents")
	if n, err := c.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 0}}}}); err != nil || n != 400 {
		t.Errorf("%d documents are left, %v", n, err)
	}
	if n := count(t, c, `{"seen": 1}`); n != 0 {
		t.Errorf("%d documents were changed by what was refused", n)
	}
}

// runText runs a command that is written as text.
func runText(t *testing.T, c *mongo.Collection, command string) error {
	t.Helper()
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(command), false, &doc); err != nil {
		t.Fatal(command, err)
	}
	return c.Database().RunCommand(t.Context(), doc).Err()
}

// count counts what a filter matches, allowed to read everything for it.
func count(t *testing.T, c *mongo.Collection, filter string) int {
	t.Helper()
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(filter), false, &doc); err != nil {
		t.Fatal(filter, err)
	}
	var reply struct{ N int }
	err := c.Database().RunCommand(t.Context(), bson.D{{Key: "count", Value: c.Name()}, {Key: "query", Value: doc}, {Key: "comment", Value: "oxbow:allow-scan"}}).Decode(&reply)
	if err != nil {
		t.Fatal(err)
	}
	return reply.N
}
