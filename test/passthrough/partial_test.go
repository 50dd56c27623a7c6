package passthrough

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/test/inprocess"
)

// cursorOf returns the ids of a cursor's batch, and whether it says that some are missing.
func cursorOf(t *testing.T, got bson.M) (id any, ids []any, partial bool) {
	t.Helper()
	cursor, ok := got["cursor"].(bson.D)
	if !ok {
		t.Fatalf("no cursor: %v", got)
	}
	batch, ok := get(cursor, "firstBatch").(bson.A)
	if !ok {
		batch = get(cursor, "nextBatch").(bson.A)
	}
	for _, doc := range batch {
		ids = append(ids, get(doc.(bson.D), "_id"))
	}
	said := get(cursor, "partialResultsReturned")
	if said != nil && said != true {
		t.Errorf("partialResultsReturned is %v", said)
	}
	return get(cursor, "id"), ids, said == true
}

// TestPartialResults: partitions whose deployment can't be reached are left out where the client allows it, and the reply says so; without, and in other
// commands, the whole is an error with the backend's name.
func TestPartialResults(t *testing.T) {
	one, two := newKeeper(t, 100), newKeeper(t, 200)
	two.uri = hasty(two.uri)
	g := inprocess.Open(t, pair(one, two, ""))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}))
	sorted := bson.E{Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}
	allowed := bson.E{Key: "allowPartialResults", Value: true}
	find := func(more ...bson.E) bson.D { return in("laid", append(bson.D{{Key: "find", Value: "c"}}, more...)) }
	if _, ids, partial := cursorOf(t, reply(t, g, find(allowed))); len(ids) != 8 || partial {
		t.Errorf("with both deployments: %v, %v", ids, partial)
	}
	open, first, partial := cursorOf(t, reply(t, g, find(allowed, sorted, bson.E{Key: "batchSize", Value: 2})))
	if len(first) != 2 || partial {
		t.Errorf("the first batch is %v, %v", first, partial)
	}
	two.stop()
	for _, more := range [][]bson.E{{}, {sorted}, {{Key: "limit", Value: 3}, sorted}, {{Key: "projection", Value: bson.D{{Key: "v", Value: 1}}}, sorted}} {
		got := reply(t, g, find(append(more, allowed)...))
		_, ids, partial := cursorOf(t, got)
		if got["ok"] != 1.0 || !partial || len(ids) == 0 || len(ids) > 7 {
			t.Errorf("%v: %v", more, got)
		}
		for _, id := range ids {
			if len(one.engineHas(t, id)) == 0 {
				t.Errorf("%v: document %v lies elsewhere", more, id)
			}
		}
		whole := reply(t, g, find(more...))
		if whole["ok"] != 0.0 || !strings.Contains(fmt.Sprint(whole["errmsg"]), "backend two") {
			t.Errorf("%v, not allowed: %v", more, whole)
		}
	}
	// What was fetched before is given out; from the batch on that misses some each says so.
	missed := 0
	for open != int64(0) {
		var ids []any
		got := reply(t, g, in("laid", bson.D{{Key: "getMore", Value: open}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 2}}))
		open, ids, partial = cursorOf(t, got)
		if partial {
			missed++
		} else if missed > 0 {
			t.Errorf("a batch behind one that misses some does not say so: %v", got)
		}
		first = append(first, ids...)
	}
	if len(first) > 8 || missed == 0 && len(first) != 8 {
		t.Errorf("in all %v, %d batches say that some are missing", first, missed)
	}
	if got := reply(t, g, in("laid", bson.D{{Key: "count", Value: "c"}})); got["ok"] != 0.0 || !strings.Contains(fmt.Sprint(got["errmsg"]), "backend two") {
		t.Errorf("count: %v", got)
	}
	// An error that a deployment answers is one, whatever the client allows.
	if got := reply(t, g, find(allowed, bson.E{Key: "hint", Value: "none"})); got["code"] != int32(2) {
		t.Errorf("a bad hint: %v", got)
	}
	one.stop()
	got := reply(t, g, find(allowed))
	if _, ids, partial := cursorOf(t, got); got["ok"] != 1.0 || len(ids) != 0 || !partial {
		t.Errorf("without any: %v", got)
	}
}
