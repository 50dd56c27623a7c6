package passthrough

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// reply runs a command through a gateway.
func reply(t *testing.T, g *inprocess.Gateway, cmd bson.D) bson.M {
	t.Helper()
	body, err := bson.Marshal(cmd)
	must(t, "encode", err)
	raw, err := g.Run(t.Context(), &backend.Request{Body: body})
	must(t, "run", err)
	var got bson.M
	must(t, "decode", bson.Unmarshal(raw, &got))
	return got
}

// alone is the configuration of a gateway in front of one deployment. laid.c has four slots there.
func alone(k *keeper, more string) string {
	return fmt.Sprintf("backends: {one: {uri: %q}}\ncollections:\n  laid.c: {hash: {field: u, count: 4}}\n%s", k.uri, more)
}

// pair is the configuration of a gateway in front of two deployments, over which laid.c is spread.
func pair(one, two *keeper, more string) string {
	return fmt.Sprintf("backends: {one: {uri: %q}, two: {uri: %q}}\ndatabases: {two: two, \"*\": one}\ncollections:\n  laid.c: {hash: {field: u, count: 4}, over: [one, two]}\n%s",
		one.uri, two.uri, more)
}

func in(database string, cmd bson.D, more ...bson.E) bson.D {
	return append(append(cmd[:len(cmd):len(cmd)], bson.E{Key: "$db", Value: database}), more...)
}

func session(n byte) bson.E {
	id := make([]byte, 16)
	id[0] = n
	return bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}}
}

func documents(n int) bson.E {
	docs := bson.A{}
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}, {Key: "v", Value: n - i}})
	}
	return bson.E{Key: "documents", Value: docs}
}

func clusterTime(at uint32) bson.E {
	return bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: at, I: 1}},
		{Key: "signature", Value: bson.D{{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}}, {Key: "keyId", Value: int64(0)}}}}}
}

func timesOf(t *testing.T, got bson.M) (operation, cluster uint32) {
	t.Helper()
	if at, ok := got["operationTime"].(bson.Timestamp); ok {
		operation = at.T
	}
	if doc, ok := got["$clusterTime"].(bson.D); ok {
		cluster = get(doc, "clusterTime").(bson.Timestamp).T
	}
	return operation, cluster
}

// commands are one of each kind that is made of parts on a collection with a layout.
func commands() []bson.D {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "w", Value: 1}}}}
	return []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "ordered", Value: false}, documents(8)},
		{{Key: "insert", Value: "c"}, documents(1)}, // a duplicate: writeErrors
		{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "u", Value: 1}}}},
		{{Key: "count", Value: "c"}},
		{{Key: "distinct", Value: "c"}, {Key: "key", Value: "v"}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}}}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: set}, {Key: "multi", Value: true}}}}},
		{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{{Key: "_id", Value: 3}}}, {Key: "update", Value: set}},
		{{Key: "findAndModify", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}, {Key: "update", Value: set}},
		{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 2}}}, {Key: "limit", Value: 1}}}}},
	}
}

// TestClusterTimeOfOneDeployment: with one deployment its times go to the client, the newest of all parts, and the client's go to every part; also on
// collections with a layout, and with errors.
func TestClusterTimeOfOneDeployment(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	heard := uint32(1000)
	for _, database := range []string{"laid", "plain"} {
		for _, cmd := range commands() {
			heard += 10
			k.take()
			got := reply(t, g, in(database, cmd, session(1), clusterTime(heard)))
			if operation, cluster := timesOf(t, got); got["ok"] != 1.0 || operation != k.time() || cluster != k.time() || operation < heard {
				t.Errorf("%s %v: at %d, the client hears %d and %d: %v", database, cmd, k.time(), operation, cluster, got)
			}
			sent := k.take()
			if len(sent) == 0 {
				t.Errorf("%s %v: nothing was sent", database, cmd)
			}
			for _, part := range sent {
				if _, cluster := timesOf(t, part); cluster < heard {
					t.Errorf("%s %v: a part says %d, its client %d", database, cmd, cluster, heard)
				}
			}
		}
		after := bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}, {Key: "afterClusterTime", Value: bson.Timestamp{T: heard, I: 1}}}}
		reply(t, g, in(database, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}}, after, session(1), clusterTime(heard)))
		for _, part := range k.take() {
			if concern, ok := part["readConcern"].(bson.D); !ok || get(concern, "afterClusterTime") != (bson.Timestamp{T: heard, I: 1}) {
				t.Errorf("%s: a part has the read concern %v", database, part["readConcern"])
			}
		}
		failed := reply(t, g, in(database, bson.D{{Key: "find", Value: "c"}, {Key: "hint", Value: "none"}}))
		if operation, cluster := timesOf(t, failed); failed["ok"] != 0.0 || operation != k.time() || cluster != k.time() {
			t.Errorf("%s: an error: %v", database, failed)
		}
	}
}

// TestClusterTimeOfGetMore: a getMore on a layout says and hears the times as its client's other commands do, in the find that it opens on the next
// partition too.
func TestClusterTimeOfGetMore(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}, session(1)))
	first := reply(t, g, in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}, session(1)))
	id := get(first["cursor"].(bson.D), "id")
	k.take()
	for i, opened := 0, 0; id != int64(0); i++ {
		heard := k.time() + 5
		more := reply(t, g, in("laid", bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 3}}, session(1), clusterTime(heard)))
		id = get(more["cursor"].(bson.D), "id")
		sent := k.take()
		for _, part := range sent {
			if part["?"] == "find" {
				opened++
			}
			if _, cluster := timesOf(t, part); cluster != heard {
				t.Errorf("getMore %d: a part says %d, its client %d", i, cluster, heard)
			}
		}
		if operation, _ := timesOf(t, more); len(sent) > 0 && operation != heard {
			t.Errorf("getMore %d: the client hears %d at %d", i, operation, heard)
		}
		if id == int64(0) && opened == 0 {
			t.Error("no partition was opened by a getMore")
		}
	}
}

// TestClusterTimesOfSeveralDeployments: several deployments' times reach no client, and none another deployment.
func TestClusterTimesOfSeveralDeployments(t *testing.T) {
	one, two := newKeeper(t, 100), newKeeper(t, 50_000)
	g := inprocess.Open(t, pair(one, two, ""))
	for _, database := range []string{"laid", "plain", "two"} {
		for _, cmd := range append(commands(), bson.D{{Key: "find", Value: "c"}, {Key: "hint", Value: "none"}}) {
			got := reply(t, g, in(database, cmd, session(1), clusterTime(900_000)))
			if got["operationTime"] != nil || got["$clusterTime"] != nil {
				t.Errorf("%s %v: the client hears %v", database, cmd, got)
			}
		}
	}
	if one.time() > 10_000 || two.time() > 60_000 {
		t.Errorf("the deployments' times are %d and %d", one.time(), two.time())
	}
	for i, k := range []*keeper{one, two} {
		gossiped := 0
		for _, part := range k.take() {
			if _, cluster := timesOf(t, part); cluster != 0 {
				gossiped++
			}
		}
		if gossiped == 0 {
			t.Errorf("deployment %d heard nothing of its own time", i)
		}
	}
	got := reply(t, g, in("plain", bson.D{{Key: "find", Value: "c"}}, session(1),
		bson.E{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: bson.Timestamp{T: 7, I: 1}}}}))
	if got["code"] != int32(115) {
		t.Errorf("a time from elsewhere: %v", got)
	}
}

// afterOf is what the last find that a deployment was sent waits for; 0: nothing.
func afterOf(t *testing.T, k *keeper) uint32 {
	t.Helper()
	sent := k.take()
	if len(sent) == 0 {
		t.Fatal("nothing was sent")
	}
	concern, _ := sent[len(sent)-1]["readConcern"].(bson.D)
	at, _ := get(concern, "afterClusterTime").(bson.Timestamp)
	return at.T
}

func from(mode string) bson.E {
	return bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: mode}}}
}

// TestCausalSessions: with several deployments the gateway makes a session's reads wait for what the session has seen of each, wherever a read may be
// served by a member that has not; nobody else's.
func TestCausalSessions(t *testing.T) {
	one, two := newKeeper(t, 100), newKeeper(t, 50_000)
	g := inprocess.Open(t, pair(one, two, ""))
	find := func(more ...bson.E) bson.D { return in("plain", bson.D{{Key: "find", Value: "c"}}, more...) }
	level := func(name string) bson.E {
		return bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: name}}}
	}
	reply(t, g, in("plain", bson.D{{Key: "insert", Value: "c"}, documents(1)}, session(1)))
	wrote := one.time()
	one.pass(10) // others' writes, which the session has not seen
	for _, test := range []struct {
		more []bson.E
		want uint32
	}{
		{[]bson.E{session(2), from("secondary")}, 0},
		{[]bson.E{from("secondary")}, 0},
		{[]bson.E{session(1), from("secondary")}, wrote},
		{[]bson.E{session(1)}, 0}, // the primary has it
		{[]bson.E{session(1), level("linearizable")}, 0},
		{[]bson.E{session(1), level("available"), from("secondary")}, 0},
		{[]bson.E{session(1), from("nearest")}, wrote + 10}, // the reads have seen the others' writes
		{[]bson.E{session(1), level("majority")}, wrote + 10},
		{[]bson.E{session(1), from("primary")}, 0},
	} {
		got := reply(t, g, find(test.more...))
		if at := afterOf(t, one); got["ok"] != 1.0 || at != test.want {
			t.Errorf("%v waits for %d, not %d: %v", test.more, at, test.want, got)
		}
	}
	// Each deployment has its own times, and each partition those of the deployment that it lies on.
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}, session(1)))
	seen := map[*keeper]uint32{one: one.time(), two: two.time()}
	one.take()
	two.take()
	got := reply(t, g, in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}}, session(1), from("secondary")))
	if batch := get(got["cursor"].(bson.D), "firstBatch").(bson.A); len(batch) != 8 {
		t.Errorf("the find gives %v", got)
	}
	for k, at := range seen {
		if after := afterOf(t, k); after > at || after < at-4 {
			t.Errorf("a part waits for %d, its deployment's time is %d", after, at)
		}
	}
}

// TestOwnWrites: with `reads: own-writes` a session that wrote reads its writes from a secondary, whatever its driver asks for.
func TestOwnWrites(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, "  plain.own: {reads: own-writes}\n"))
	write := func(database, name string) uint32 {
		reply(t, g, in(database, bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: bson.A{bson.D{{Key: "u", Value: 1}}}}}, session(1)))
		return k.time()
	}
	for _, wrote := range []uint32{write("plain", "own"), write("laid", "c")} {
		k.pass(10)
		k.take()
		reply(t, g, in("plain", bson.D{{Key: "count", Value: "own"}}, session(1), from("secondaryPreferred")))
		if at := afterOf(t, k); at < wrote {
			t.Errorf("a read waits for %d, the session wrote at %d", at, wrote)
		}
	}
	reply(t, g, in("plain", bson.D{{Key: "count", Value: "own"}}, session(1)))
	if at := afterOf(t, k); at != 0 {
		t.Errorf("a read of the primary waits for %d", at)
	}
	reply(t, g, in("plain", bson.D{{Key: "count", Value: "other"}}, session(1), from("secondary")))
	if at := afterOf(t, k); at != 0 {
		t.Errorf("a read of another collection waits for %d", at)
	}
	// What the client asks for itself counts where it is later.
	later := k.time()
	asks := bson.E{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: bson.Timestamp{T: later, I: 1}}}}
	reply(t, g, in("plain", bson.D{{Key: "count", Value: "own"}}, session(1), from("secondary"), asks))
	if at := afterOf(t, k); at != later {
		t.Errorf("a read waits for %d, its client asks for %d", at, later)
	}
	// The end of the session ends it.
	reply(t, g, bson.D{{Key: "endSessions", Value: bson.A{session(1).Value}}, {Key: "$db", Value: "admin"}})
	reply(t, g, in("plain", bson.D{{Key: "count", Value: "own"}}, session(1), from("secondary")))
	if at := afterOf(t, k); at != 0 {
		t.Errorf("a read of a session that was ended waits for %d", at)
	}
}

// TestDefaultReadPreference: reads that say nothing go where the configuration says; the client's own word wins; writes and transactions are not reads.
func TestDefaultReadPreference(t *testing.T) {
	k := newKeeper(t, 100)
	text := fmt.Sprintf(`backends: {one: {uri: %q}}
databases: {db: {backend: one, read: {mode: nearest}}}
collections:
  laid.c: {hash: {field: u, count: 2}, read: {mode: secondary, maxStaleness: 120s, tags: [{dc: east}, {}]}}
  db.c: {read: {mode: secondaryPreferred}}
`, k.uri)
	g := inprocess.Open(t, text)
	for _, database := range []string{"laid", "db"} {
		reply(t, g, in(database, bson.D{{Key: "insert", Value: "c"}, documents(4)}))
	}
	stale := bson.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: bson.A{bson.D{{Key: "dc", Value: "east"}}, bson.D{}}}, {Key: "maxStalenessSeconds", Value: int64(120)}}
	preferred := bson.D{{Key: "mode", Value: "secondaryPreferred"}}
	reads := []bson.D{
		{{Key: "find", Value: "c"}}, {{Key: "count", Value: "c"}}, {{Key: "distinct", Value: "c"}, {Key: "key", Value: "u"}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}}, {Key: "cursor", Value: bson.D{}}},
	}
	preferences := func(cmd bson.D) string {
		k.take()
		if got := reply(t, g, cmd); got["ok"] != 1.0 {
			t.Errorf("%v: %v", cmd, got)
		}
		seen := map[string]bool{}
		out := ""
		for _, part := range k.take() {
			if one := fmt.Sprint(part["$readPreference"]); !seen[one] {
				seen[one] = true
				out += one
			}
		}
		return out
	}
	for _, cmd := range reads {
		for database, want := range map[string]bson.D{"laid": stale, "db": preferred} {
			if got := preferences(in(database, cmd)); got != fmt.Sprint(want) {
				t.Errorf("%s %v goes to %s", database, cmd, got)
			}
			if got := preferences(in(database, cmd, from("primary"))); got != fmt.Sprint(from("primary").Value) {
				t.Errorf("%s %v from the primary goes to %s", database, cmd, got)
			}
			if got := preferences(in(database, cmd, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "linearizable"}}})); got != "<nil>" {
				t.Errorf("%s %v, linearizable, goes to %s", database, cmd, got)
			}
		}
	}
	if got := preferences(in("db", bson.D{{Key: "find", Value: "other"}})); got != "[{mode nearest}]" && got != fmt.Sprint(bson.D{{Key: "mode", Value: "nearest"}}) {
		t.Errorf("another collection of the database goes to %s", got)
	}
	begin := []bson.E{session(1), {Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}, {Key: "startTransaction", Value: true}}
	for _, database := range []string{"laid", "db"} {
		for _, cmd := range append(commands()[7:], in(database, reads[0], begin...)[:1]) {
			cmd := in(database, cmd)
			if cmd[0].Key == "find" {
				begin[1].Value = begin[1].Value.(int64) + 1
				cmd = append(cmd, begin...)
			}
			if got := preferences(cmd); got != "<nil>" {
				t.Errorf("%s %v goes to %s", database, cmd, got)
			}
		}
	}
}

// TestSecondPartition: a partition that a getMore opens is read as the find was.
func TestSecondPartition(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, fmt.Sprintf("backends: {one: {uri: %q}}\nreads: own-writes\ncollections:\n  laid.c: {hash: {field: u, count: 2}, read: {mode: secondary}}\n", k.uri))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(6)}, session(1)))
	first := reply(t, g, in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}, session(1)))
	wrote := k.time()
	k.take()
	reply(t, g, in("laid", bson.D{{Key: "getMore", Value: get(first["cursor"].(bson.D), "id")}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 10}}, session(1)))
	opened := 0
	for _, part := range k.take() {
		if part["?"] != "find" {
			continue
		}
		opened++
		concern, _ := part["readConcern"].(bson.D)
		if fmt.Sprint(part["$readPreference"]) != fmt.Sprint(bson.D{{Key: "mode", Value: "secondary"}}) || get(concern, "afterClusterTime") != (bson.Timestamp{T: wrote, I: 1}) {
			t.Errorf("the next partition is read by %v", part)
		}
	}
	if opened != 1 {
		t.Errorf("%d partitions were opened by the getMore", opened)
	}
}

// TestDriversCausalSession: a driver's causally consistent session works through the gateway as it does without, on a collection with a layout too.
func TestDriversCausalSession(t *testing.T) {
	k := newKeeper(t, 100)
	client := connect(t, alone(k, ""))
	for _, database := range []string{"laid", "plain"} {
		c := client.Database(database).Collection("c")
		s, err := client.StartSession()
		must(t, "start a session", err)
		ctx := mongo.NewSessionContext(t.Context(), s)
		_, err = c.InsertMany(ctx, many(8))
		must(t, "insert", err)
		wrote := k.time()
		k.take()
		var got []bson.M
		cursor, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "v", Value: 1}}))
		must(t, "find", err)
		must(t, "read", cursor.All(ctx, &got))
		sent := k.take()
		for _, part := range sent {
			concern, _ := part["readConcern"].(bson.D)
			if at, _ := get(concern, "afterClusterTime").(bson.Timestamp); at.T != wrote {
				t.Errorf("%s: a part waits for %d, the session wrote at %d", database, at.T, wrote)
			}
		}
		if len(got) != 8 || len(sent) == 0 || s.OperationTime() == nil || s.OperationTime().T < wrote {
			t.Errorf("%s: %d documents, %d commands, operation time %v", database, len(got), len(sent), s.OperationTime())
		}
		s.EndSession(t.Context())
	}
}
