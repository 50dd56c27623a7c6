package equivalence

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// answering has one plain collection, one split by hash, and one whose partitions lie in databases of their own.
const answering = `
backends: {local: {embedded: answers}}
collections:
  shop.split: {hash: {field: _id, count: 3}}
  log.daily:  {time: {field: at, every: day, as: database}}
`

// ask sends one command to a database and returns the reply.
func ask(t *testing.T, g *inprocess.Gateway, database string, pairs ...any) bson.D {
	t.Helper()
	body, err := bson.Marshal(append(d(pairs...), bson.E{Key: "$db", Value: database}))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := g.Run(context.Background(), &backend.Request{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	var reply bson.D
	if err := bson.Unmarshal(raw, &reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

// must is ask for a command that succeeds.
func must(t *testing.T, g *inprocess.Gateway, database string, pairs ...any) bson.D {
	t.Helper()
	reply := ask(t, g, database, pairs...)
	if field(reply, "ok") != 1.0 || field(reply, "writeErrors") != nil {
		t.Fatalf("%v: %v", pairs, reply)
	}
	return reply
}

// within follows a path of keys.
func within(doc any, path ...string) any {
	for _, key := range path {
		switch at := doc.(type) {
		case bson.D:
			doc = field(at, key)
		case bson.A:
			if key != "0" || len(at) == 0 {
				return nil
			}
			doc = at[0]
		default:
			return nil
		}
	}
	return doc
}

// TestErrorsDoNotDependOnTheLayout: what is refused on a plain collection is refused with the same code on one with a layout.
func TestErrorsDoNotDependOnTheLayout(t *testing.T) {
	g := inprocess.Open(t, answering)
	strict := []any{"apiVersion", "1", "apiStrict", true}
	for _, c := range []struct {
		why  string
		code int32
		rest func(collection string) []any
	}{
		{"a snapshot read by find", 115, func(c string) []any { return []any{"find", c, "readConcern", d("level", "snapshot")} }},
		{"a snapshot read by count", 115, func(c string) []any { return []any{"count", c, "readConcern", d("level", "snapshot")} }},
		{"a snapshot read by distinct", 115, func(c string) []any {
			return []any{"distinct", c, "key", "a", "readConcern", d("level", "snapshot")}
		}},
		{"a snapshot read by aggregate", 115, func(c string) []any {
			return []any{"aggregate", c, "pipeline", bson.A{d("$sort", d("a", 1)), d("$limit", 1)}, "cursor", bson.D{}, "readConcern", d("level", "snapshot")}
		}},
		{"a read at a cluster time", 115, func(c string) []any {
			return []any{"count", c, "readConcern", d("atClusterTime", bson.Timestamp{T: 1})}
		}},
		{"a write with a read concern", 72, func(c string) []any {
			return []any{"insert", c, "documents", bson.A{d("a", 1)}, "readConcern", d("level", "majority")}
		}},
		{"a transaction", 263, func(c string) []any {
			return []any{"find", c, "lsid", d("id", bson.Binary{Subtype: 4, Data: make([]byte, 16)}), "txnNumber", int64(1), "startTransaction", true, "autocommit", false}
		}},
		{"an update by a stage that does not exist", 40324, func(c string) []any {
			return []any{"update", c, "updates", bson.A{d("q", d("_id", 1), "u", bson.A{d("$set", d("a", 1)), d("$polish", 1)})}}
		}},
		{"distinct with apiStrict", 323, func(c string) []any { return append([]any{"distinct", c, "key", "a"}, strict...) }},
		{"find with min and apiStrict", 323, func(c string) []any {
			return append([]any{"find", c, "min", d("_id", 1), "hint", d("_id", 1)}, strict...)
		}},
		{"a stage outside of the Stable API", 323, func(c string) []any {
			return append([]any{"aggregate", c, "pipeline", bson.A{d("$indexStats", bson.D{})}, "cursor", bson.D{}}, strict...)
		}},
		{"the same stage inside $lookup", 323, func(c string) []any {
			lookup := d("$lookup", d("from", "other", "as", "o", "pipeline", bson.A{d("$indexStats", bson.D{})}))
			return append([]any{"aggregate", c, "pipeline", bson.A{lookup}, "cursor", bson.D{}}, strict...)
		}},
		{"a stage of MongoDB's hosting", 6047401, func(c string) []any {
			return []any{"aggregate", c, "pipeline", bson.A{d("$search", bson.D{})}, "cursor", bson.D{}}
		}},
	} {
		for _, collection := range []string{"plain", "split"} {
			if reply := ask(t, g, "shop", c.rest(collection)...); field(reply, "code") != c.code {
				t.Errorf("%s on %s: %v, want code %d", c.why, collection, reply, c.code)
			}
		}
	}
	for _, collection := range []string{"plain", "split"} {
		must(t, g, "shop", "find", collection, "readConcern", d("level", "majority"))
		must(t, g, "shop", "insert", collection, "documents", bson.A{d("a", 1)}, "readConcern", d("level", "local"))
		must(t, g, "shop", append([]any{"aggregate", collection, "pipeline", bson.A{d("$match", bson.D{})}, "cursor", bson.D{}}, strict...)...)
	}
}

// TestReservedCollectionNames: neither a write nor a command that makes a collection takes a name that is the server's own.
func TestReservedCollectionNames(t *testing.T) {
	g := inprocess.Open(t, answering)
	for name, code := range map[string]int32{"system.x": 73, "system.views": 73, "a.system.x": 2, "system.buckets.a": 73} {
		for _, command := range [][]any{
			{"insert", name, "documents", bson.A{d("a", 1)}},
			{"update", name, "updates", bson.A{d("q", bson.D{}, "u", d("$set", d("a", 1)), "upsert", true)}},
			{"delete", name, "deletes", bson.A{d("q", bson.D{}, "limit", 0)}},
			{"findAndModify", name, "remove", true},
			{"create", name},
			{"createIndexes", name, "indexes", bson.A{d("key", d("a", 1), "name", "a_1")}},
		} {
			if reply := ask(t, g, "shop", command...); field(reply, "code") != code {
				t.Errorf("%s of %s: %v, want code %d", command[0], name, reply, code)
			}
		}
	}
	must(t, g, "shop", "insert", "systematic.x", "documents", bson.A{d("a", 1)})
}

// TestEmptyTimestampsAreStamped: at the top level of an inserted document, in the order of the documents.
func TestEmptyTimestampsAreStamped(t *testing.T) {
	g := inprocess.Open(t, answering)
	for _, collection := range []string{"plain", "split"} {
		var docs bson.A
		for i := range 9 {
			docs = append(docs, d("_id", i, "at", bson.Timestamp{}, "in", d("at", bson.Timestamp{})))
		}
		must(t, g, "shop", "insert", collection, "documents", docs)
		reply := must(t, g, "shop", "find", collection, "sort", d("_id", 1))
		last := bson.Timestamp{T: 1_700_000_000}
		for _, doc := range within(reply, "cursor", "firstBatch").(bson.A) {
			at := within(doc, "at").(bson.Timestamp)
			if !at.After(last) || within(doc, "in", "at") != (bson.Timestamp{}) {
				t.Errorf("%s: %v after %v", collection, doc, last)
			}
			last = at
		}
	}
}

// TestCountsAreExplained: how a count goes about it shows, on a plain collection and on a partition.
func TestCountsAreExplained(t *testing.T) {
	g := inprocess.Open(t, answering)
	for _, collection := range []string{"plain", "split"} {
		var docs bson.A
		for i := range 30 {
			docs = append(docs, d("_id", i, "a", i%5, "b", i%3))
		}
		must(t, g, "shop", "insert", collection, "documents", docs)
		must(t, g, "shop", "createIndexes", collection, "indexes", bson.A{d("key", d("a", 1), "name", "by a"), d("key", d("b", 1), "name", "by b")})
		winning := func(reply bson.D, path ...string) any {
			plan := within(reply, "queryPlanner", "winningPlan")
			if shard := within(plan, "shards", "0"); shard != nil {
				plan = within(shard, "winningPlan")
			}
			return within(plan, path...)
		}
		reply := must(t, g, "shop", "explain", d("count", collection, "query", d("a", 2)), "verbosity", "executionStats")
		if winning(reply, "stage") != "COUNT" || winning(reply, "inputStage", "stage") != "COUNT_SCAN" || winning(reply, "inputStage", "indexName") != "by a" {
			t.Errorf("%s: a count by an index's keys: %v", collection, reply)
		}
		if n, docs := asInt(within(reply, "executionStats", "totalKeysExamined")), asInt(within(reply, "executionStats", "totalDocsExamined")); n < 6 || docs != 0 {
			t.Errorf("%s: %d keys and %d documents examined", collection, n, docs)
		}
		reply = must(t, g, "shop", "explain", d("count", collection, "query", d("a", 2, "b", 1)))
		if winning(reply, "inputStage", "stage") != "FETCH" {
			t.Errorf("%s: a count that needs documents: %v", collection, reply)
		}
		reply = must(t, g, "shop", "explain", d("count", collection))
		if winning(reply, "stage") != "RECORD_STORE_FAST_COUNT" {
			t.Errorf("%s: a count of all: %v", collection, reply)
		}
	}
}

// TestRejectedPlansAreShown: explain names the other indexes that would have served.
func TestRejectedPlansAreShown(t *testing.T) {
	g := inprocess.Open(t, answering)
	var docs bson.A
	for i := range 30 {
		docs = append(docs, d("_id", i, "a", i%15, "b", i%3))
	}
	must(t, g, "shop", "insert", "plain", "documents", docs)
	must(t, g, "shop", "createIndexes", "plain", "indexes", bson.A{d("key", d("a", 1), "name", "by a"), d("key", d("b", 1), "name", "by b")})
	reply := must(t, g, "shop", "explain", d("find", "plain", "filter", d("a", 2, "b", 2)))
	if got := within(reply, "queryPlanner", "winningPlan", "inputStage", "indexName"); got != "by a" {
		t.Errorf("chosen: %v", got)
	}
	others := within(reply, "queryPlanner", "rejectedPlans").(bson.A)
	if len(others) != 1 || within(others, "0", "stage") != "FETCH" || within(others, "0", "inputStage", "indexName") != "by b" {
		t.Errorf("rejected: %v", others)
	}
	reply = must(t, g, "shop", "explain", d("find", "plain", "filter", d("a", 2)))
	if others := within(reply, "queryPlanner", "rejectedPlans").(bson.A); len(others) != 0 {
		t.Errorf("rejected where there is no choice: %v", others)
	}
}

// TestValidateCountsKeys: with a layout as without one.
func TestValidateCountsKeys(t *testing.T) {
	g := inprocess.Open(t, answering)
	for _, collection := range []string{"plain", "split"} {
		must(t, g, "shop", "createIndexes", collection, "indexes", bson.A{d("key", d("tags", 1), "name", "by tag")})
		for i := range 20 {
			must(t, g, "shop", "insert", collection, "documents", bson.A{d("_id", i, "tags", bson.A{"x", "y"})})
		}
		reply := must(t, g, "shop", "validate", collection, "checkBSONConformance", true)
		keys := within(reply, "keysPerIndex")
		if asInt(within(keys, "_id_")) != 20 || asInt(within(keys, "by tag")) != 40 || asInt(field(reply, "nrecords")) != 20 || field(reply, "valid") != true {
			t.Errorf("%s: %v", collection, reply)
		}
		must(t, g, "shop", "validate", collection, "scandata", false, "full", false, "background", true)
		if reply := ask(t, g, "shop", "validate", collection, "full", true, "background", true); field(reply, "code") != int32(72) {
			t.Errorf("%s: in full and in the background: %v", collection, reply)
		}
		if reply := ask(t, g, "shop", "validate", collection, "checkBSONConformance", "yes"); field(reply, "code") != int32(14) {
			t.Errorf("%s: an option of a wrong type: %v", collection, reply)
		}
	}
}

// TestIndexOptionsWithoutEffect: background is shown again as it was given, dropDups is taken, and neither makes an index another one.
func TestIndexOptionsWithoutEffect(t *testing.T) {
	g := inprocess.Open(t, answering)
	for _, collection := range []string{"plain", "split"} {
		unasked := append(d("key", d("b", 1), "name", "by b"), d("background", false)...)
		must(t, g, "shop", "createIndexes", collection, "indexes", bson.A{unasked})
		for _, options := range []bson.D{d("background", true), d("dropDups", false), {}, d("background", false)} {
			spec := append(d("key", d("a", 1), "name", "by a"), options...)
			must(t, g, "shop", "createIndexes", collection, "indexes", bson.A{spec})
		}
		reply := must(t, g, "shop", "listIndexes", collection)
		listed := within(reply, "cursor", "firstBatch").(bson.A)
		want := bson.A{
			d("v", int32(2), "key", d("_id", int32(1)), "name", "_id_"),
			d("v", int32(2), "key", d("b", int32(1)), "name", "by b", "background", false),
			d("v", int32(2), "key", d("a", int32(1)), "name", "by a", "background", true),
		}
		if text(listed, true) != text(want, true) {
			t.Errorf("%s: %v", collection, listed)
		}
	}
}

// TestDatabaseOfPartitions: dropping a database that is one partition's own is refused, and the partition is still there.
func TestDatabaseOfPartitions(t *testing.T) {
	g := inprocess.Open(t, answering)
	must(t, g, "log", "insert", "daily", "documents", bson.A{d("_id", 1, "at", day(0, 0))})
	listed := must(t, g, "admin", "listDatabases", 1, "nameOnly", true, "showPartitions", true)
	own := ""
	for _, db := range field(listed, "databases").(bson.A) {
		if name := within(db, "name").(string); name != "log" && len(name) > 3 && name[:3] == "log" {
			own = name
		}
	}
	if own == "" {
		t.Fatalf("no database of a partition: %v", listed)
	}
	if reply := ask(t, g, own, "dropDatabase", 1); field(reply, "code") != int32(115) {
		t.Errorf("dropDatabase of %s: %v", own, reply)
	}
	if reply := must(t, g, "log", "count", "daily"); asInt(field(reply, "n")) != 1 {
		t.Errorf("after that: %v", reply)
	}
	if reply := must(t, g, "log", "dropDatabase", 1); field(reply, "dropped") != "log" {
		t.Errorf("dropDatabase of log: %v", reply)
	}
	if reply := must(t, g, "log", "count", "daily"); asInt(field(reply, "n")) != 0 {
		t.Errorf("after that: %v", reply)
	}
}

// TestCursorsOfLists: killCursors takes the namespace that a list's cursor has, and one of no cursor at all.
func TestCursorsOfLists(t *testing.T) {
	g := inprocess.Open(t, answering)
	reply := must(t, g, "shop", "killCursors", "$cmd.listCollections", "cursors", bson.A{int64(99)})
	if gone := field(reply, "cursorsNotFound").(bson.A); len(gone) != 1 {
		t.Errorf("%v", reply)
	}
	if reply := ask(t, g, "shop", "killCursors", "$money", "cursors", bson.A{int64(99)}); field(reply, "code") != int32(73) {
		t.Errorf("a name that is none: %v", reply)
	}
}

// TestLargeScale: figures in units larger than a 32-bit number say so.
func TestLargeScale(t *testing.T) {
	g := inprocess.Open(t, answering)
	for _, collection := range []string{"plain", "split"} {
		must(t, g, "shop", "insert", collection, "documents", bson.A{d("_id", 1)})
		for _, scale := range []int64{1024, 5_000_000_000, 1<<53 + 1} {
			if reply := must(t, g, "shop", "collStats", collection, "scale", scale); asInt(field(reply, "scaleFactor")) != scale {
				t.Errorf("%s by %d: %v", collection, scale, field(reply, "scaleFactor"))
			}
		}
	}
}

// asInt is an integer of either width; -1 for anything else.
func asInt(v any) int64 {
	switch n := v.(type) {
	case int32:
		return int64(n)
	case int64:
		return n
	}
	return -1
}

// TestCollStatsStage: the stage tells what the command does, for a collection as a whole, and pipelines go on from it.
func TestCollStatsStage(t *testing.T) {
	g := inprocess.Open(t, answering)
	none := bson.D{}
	aggregate := func(collection string, stages ...any) bson.D {
		return ask(t, g, "shop", "aggregate", collection, "pipeline", bson.A(stages), "cursor", bson.D{})
	}
	first := func(collection string, stages ...any) bson.D {
		t.Helper()
		answer := aggregate(collection, stages...)
		cursor, _ := field(answer, "cursor").(bson.D)
		docs, _ := field(cursor, "firstBatch").(bson.A)
		if len(docs) != 1 {
			t.Fatalf("%s: %v", collection, answer)
		}
		return docs[0].(bson.D)
	}
	for _, collection := range []string{"plain", "split"} {
		docs := bson.A{}
		for i := range 20 {
			docs = append(docs, d("_id", i))
		}
		must(t, g, "shop", "insert", collection, "documents", docs)
		doc := first(collection, d("$collStats", d("storageStats", d("scale", 10), "count", none, "latencyStats", none)))
		stats := field(doc, "storageStats").(bson.D)
		command := must(t, g, "shop", "collStats", collection, "scale", 10)
		if field(doc, "ns") != "shop."+collection || asInt(field(doc, "count")) != 20 || asInt(field(stats, "size")) != asInt(field(command, "size")) ||
			asInt(field(stats, "count")) != 20 || asInt(field(stats, "scaleFactor")) != 10 || field(stats, "ok") != nil {
			t.Errorf("%s: %v", collection, doc)
		}
		if writes := field(field(doc, "latencyStats").(bson.D), "writes").(bson.D); asInt(field(writes, "ops")) < 1 {
			t.Errorf("%s: latencies %v", collection, doc)
		}
		total := d("$group", d("_id", nil, "n", d("$sum", "$storageStats.size")))
		if sum := first(collection, d("$collStats", d("storageStats", none)), total); asInt(field(sum, "n")) != 20*14 {
			t.Errorf("%s: grouped %v", collection, sum)
		}
		for what, c := range map[string]struct {
			stage any
			code  int32
		}{
			"histograms":       {d("$collStats", d("latencyStats", d("histograms", true))), 115},
			"execution":        {d("$collStats", d("queryExecStats", none)), 115},
			"an unknown part":  {d("$collStats", d("more", none)), 40415},
			"an unknown field": {d("$collStats", d("storageStats", d("more", 1))), 40415},
			"a scale of 0":     {d("$collStats", d("storageStats", d("scale", 0))), 51024},
			"a number":         {d("$collStats", d("count", 1)), 14},
			"no object":        {d("$collStats", 1), 9},
		} {
			if answer := aggregate(collection, c.stage); field(answer, "code") != c.code {
				t.Errorf("%s, %s: %v", collection, what, answer)
			}
		}
		if answer := aggregate(collection, d("$match", none), d("$collStats", none)); field(answer, "code") != int32(40602) {
			t.Errorf("%s, as the second stage: %v", collection, answer)
		}
		must(t, g, "shop", "drop", collection)
		if answer := aggregate(collection, d("$collStats", d("storageStats", none))); field(answer, "code") != int32(26) {
			t.Errorf("%s that is not there: %v", collection, answer)
		}
	}
}
