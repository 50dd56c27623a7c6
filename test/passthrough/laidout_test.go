package passthrough

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"oxbow"
	"oxbow/test/inprocess"
)

// connect opens a gateway and returns a client of it.
func connect(t *testing.T, text string) *mongo.Client {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: []byte(text)})
	must(t, "open", err)
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	must(t, "connect", err)
	t.Cleanup(func() {
		ctx := context.Background()
		must(t, "disconnect", client.Disconnect(ctx))
		must(t, "close", g.Close(ctx))
	})
	return client
}

// shape tells how statements of transactions begin it: a line a command.
func shape(sent []bson.M) string {
	var lines []string
	for _, cmd := range sent {
		line := fmt.Sprintf("%v %v", cmd["?"], cmd["$db"])
		if cmd["autocommit"] == false {
			line += " in"
		}
		if cmd["startTransaction"] == true {
			line += " begins"
		}
		if concern, ok := cmd["readConcern"].(bson.D); ok {
			line += fmt.Sprintf(" %v", get(concern, "level"))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// many are documents with u from 0 up.
func many(n int) []bson.D {
	var docs []bson.D
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}, {Key: "v", Value: -i}})
	}
	return docs
}

// TestTransactionOnLayout: the statements of a transaction on collections with and without a layout follow one another on the deployment, of which the first
// begins it; cursors' batches are statements too; the end gets what the deployment says that it needs.
func TestTransactionOnLayout(t *testing.T) {
	k := newKeeper(t, 100)
	client := connect(t, alone(k, ""))
	laid, plain := client.Database("laid").Collection("c"), client.Database("plain").Collection("c")
	_, err := laid.InsertMany(t.Context(), many(500))
	must(t, "insert", err)
	session, err := client.StartSession(options.Session().SetDefaultTransactionOptions(options.Transaction().SetReadConcern(readconcern.Snapshot())))
	must(t, "start a session", err)
	defer session.EndSession(t.Context())
	for _, end := range []string{"commitTransaction", "abortTransaction"} {
		k.take()
		k.endings()
		must(t, "start a transaction", session.StartTransaction())
		ctx := mongo.NewSessionContext(t.Context(), session)
		_, err := laid.InsertMany(ctx, many(910)[900:], options.InsertMany().SetOrdered(false))
		must(t, "insert", err)
		_, err = plain.InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
		must(t, "insert into a plain collection", err)
		cursor, err := laid.Find(ctx, bson.D{}, options.Find().SetBatchSize(70))
		must(t, "find", err)
		var got []bson.M
		must(t, "read", cursor.All(ctx, &got))
		if len(got) != 510 {
			t.Errorf("the find gives %d documents", len(got))
		}
		updated, err := laid.UpdateMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 900}}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "w", Value: 1}}}})
		must(t, "update", err)
		if updated.ModifiedCount != 10 {
			t.Errorf("updated: %+v", updated)
		}
		must(t, "findAndModify", laid.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: 905}}, options.FindOneAndDelete().SetSort(bson.D{{Key: "v", Value: 1}})).Err())
		deleted, err := laid.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 900}}}})
		must(t, "delete", err)
		if deleted.DeletedCount != 9 {
			t.Errorf("deleted: %+v", deleted)
		}
		if end == "commitTransaction" {
			must(t, end, session.CommitTransaction(ctx))
			must(t, "commit again", session.CommitTransaction(ctx))
		} else {
			must(t, end, session.AbortTransaction(ctx))
		}
		sent := k.take()
		kinds := map[string]int{}
		for i, cmd := range sent {
			name := fmt.Sprint(cmd["?"])
			kinds[name]++
			if cmd["autocommit"] != false || (cmd["startTransaction"] == true) != (i == 0) || (cmd["readConcern"] != nil) != (i == 0) || cmd["txnNumber"] == nil {
				t.Errorf("statement %d is %v", i, cmd)
			}
			if fmt.Sprint(cmd["lsid"]) != fmt.Sprint(sent[0]["lsid"]) {
				t.Errorf("statement %d is in session %v", i, cmd["lsid"])
			}
		}
		if concern, _ := sent[0]["readConcern"].(bson.D); get(concern, "level") != "snapshot" {
			t.Errorf("it begins with the read concern %v", sent[0]["readConcern"])
		}
		if kinds["getMore"] < 2 || kinds["insert"] < 4 || kinds["update"] != 4 || kinds["find"] < 8 {
			t.Errorf("sent: %v", kinds)
		}
		if ended := k.endings(); !strings.HasPrefix(ended, end+" ") || !strings.Contains(ended, "at") {
			t.Errorf("it ended by %q", ended)
		}
		must(t, "drop", plain.Drop(t.Context()))
	}
}

// statements runs commands as the statements of one transaction of session 1, the first of which begins it, and returns the replies.
func statements(t *testing.T, g *inprocess.Gateway, number int64, cmds ...bson.D) []bson.M {
	t.Helper()
	var replies []bson.M
	for i, cmd := range cmds {
		more := []bson.E{session(1), {Key: "txnNumber", Value: number}, {Key: "autocommit", Value: false}}
		if i == 0 {
			more = append(more, bson.E{Key: "startTransaction", Value: true}, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}})
		}
		replies = append(replies, reply(t, g, append(cmd[:len(cmd):len(cmd)], more...)))
	}
	return replies
}

func ok(t *testing.T, replies []bson.M) {
	t.Helper()
	for i, got := range replies {
		if got["ok"] != 1.0 {
			t.Errorf("statement %d: %v", i, got)
		}
	}
}

var (
	commit = bson.D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}}
	abort  = bson.D{{Key: "abortTransaction", Value: 1}, {Key: "$db", Value: "admin"}}
)

// TestTransactionBeginsWhereItIsSent: the first statement that is really sent begins the transaction, with the read concern of the client's first. One of
// which nothing was sent ends at the gateway.
func TestTransactionBeginsWhereItIsSent(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	nothing := in("laid", bson.D{{Key: "find", Value: "c"}}) // no partition exists
	insert := in("plain", bson.D{{Key: "insert", Value: "c"}, documents(1)})
	ok(t, statements(t, g, 1, nothing, nothing, insert, nothing, commit, commit))
	if got, want := shape(k.take()), "insert plain in begins snapshot\ncommitTransaction admin in\ncommitTransaction admin in"; got != want {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
	ok(t, statements(t, g, 2, nothing, commit, commit))
	ok(t, statements(t, g, 3, nothing, abort))
	insert[0].Value = "d"
	laid := in("laid", bson.D{{Key: "insert", Value: "c"}, documents(1)})
	replies := statements(t, g, 4, nothing, laid, insert, commit)
	ok(t, replies)
	if got, want := shape(k.take()), "insert laid in begins snapshot\ninsert plain in\ncommitTransaction admin in"; got != want {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
	if replies[1]["recoveryToken"] == nil || replies[0]["recoveryToken"] != nil {
		t.Errorf("the recovery token is in %v", replies)
	}
	late := append(in("plain", bson.D{{Key: "find", Value: "c"}}), session(1), bson.E{Key: "txnNumber", Value: int64(3)}, bson.E{Key: "autocommit", Value: false})
	if got := reply(t, g, late); got["code"] != int32(225) {
		t.Errorf("a transaction before the latest: %v", got)
	}
}

// TestTransactionMakesPartitions: what a write needs is made outside of its transaction, before the statement.
func TestTransactionMakesPartitions(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	ok(t, statements(t, g, 1, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}), commit))
	if got := shape(k.take()); strings.Count(got, "begins") != 1 || strings.Count(got, "insert laid in") != 8 {
		t.Errorf("sent\n%s", got)
	}
	if got := statements(t, g, 2, in("laid", bson.D{{Key: "create", Value: "c"}})); got[0]["code"] != int32(263) {
		t.Errorf("create in a transaction: %v", got)
	}
	if got := reply(t, g, in("laid", bson.D{{Key: "count", Value: "c"}})); got["n"] != int32(8) {
		t.Errorf("count: %v", got)
	}
}

// TestTransactionFailsInTheMiddle: a statement of which a part fails, at the deployment or here, leaves the transaction aborted: what was done of it is
// never committed.
func TestTransactionFailsInTheMiddle(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}))
	insert := func(ids ...any) bson.D {
		docs := bson.A{}
		for _, id := range ids {
			docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "u", Value: id}})
		}
		return in("laid", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	}
	array := insert(100)
	array[1].Value = bson.A{bson.D{{Key: "_id", Value: 100}, {Key: "u", Value: 100}}, bson.D{{Key: "_id", Value: 101}, {Key: "u", Value: bson.A{1}}}}
	refused := func(name string) func(bson.M) (bson.D, bool) {
		n := 0
		return func(cmd bson.M) (bson.D, bool) {
			if cmd["?"] == name && cmd["autocommit"] == false {
				n++
			}
			return failure(112, "write conflict", "TransientTransactionError"), n == 2 && cmd["?"] == name
		}
	}
	for i, test := range []struct {
		title    string
		script   func(bson.M) (bson.D, bool)
		cmd      bson.D
		labelled bool
	}{
		{"a duplicate key", nil, insert(20, 21, 1), false},
		{"a document that belongs nowhere", nil, array, false},
		{"a write conflict in the second part", refused("insert"), insert(30, 31, 32, 33), true},
		{"an unknown field", nil, append(insert(40), bson.E{Key: "nonsense", Value: 1}), false},
		{"a read's part", refused("find"), in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}}), true},
	} {
		k.endings()
		k.answers(test.script)
		number := int64(10 + i)
		replies := statements(t, g, number, insert(1000+i*10), test.cmd, insert(1001+i*10), commit)
		k.answers(nil)
		failed := replies[1]
		if failed["ok"] == 1.0 && failed["writeErrors"] == nil {
			t.Errorf("%s: %v", test.title, failed)
		}
		if labels := fmt.Sprint(failed["errorLabels"]); strings.Contains(labels, "TransientTransactionError") != test.labelled {
			t.Errorf("%s: labels %s", test.title, labels)
		}
		for _, got := range replies[2:] {
			if got["code"] != int32(251) || !strings.Contains(fmt.Sprint(got["errorLabels"]), "TransientTransactionError") {
				t.Errorf("%s: what comes behind it gets %v", test.title, got)
			}
		}
		k.mu.Lock()
		if len(k.open) != 0 {
			t.Errorf("%s: the transaction is open: %v", test.title, k.open)
		}
		k.mu.Unlock()
		if ended := k.endings(); strings.Contains(ended, "commit") {
			t.Errorf("%s: it ended by %s", test.title, ended)
		}
	}
}

// TestTransactionOverDeployments: a collection that is spread over two deployments takes a transaction that needs one of them only.
func TestTransactionOverDeployments(t *testing.T) {
	one, two := newKeeper(t, 100), newKeeper(t, 200)
	g := inprocess.Open(t, pair(one, two, ""))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(8)}))
	one.take()
	two.take()
	find := func(u int) bson.D {
		return in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "u", Value: u}}}})
	}
	var first, second int // values of u on two deployments
	for u := range 4 {
		reply(t, g, find(u))
		if len(one.take()) > 0 {
			first = u
		} else {
			second = u
		}
	}
	two.take()
	ok(t, statements(t, g, 1, find(first), find(first+4), in("one", bson.D{{Key: "find", Value: "plain"}}), commit))
	replies := statements(t, g, 2, find(second), find(first), commit)
	if replies[0]["ok"] != 1.0 || replies[1]["code"] != int32(263) || replies[2]["code"] != int32(251) {
		t.Errorf("a transaction over two deployments: %v", replies)
	}
	replies = statements(t, g, 3, in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "v", Value: 1}}}}), commit)
	if replies[0]["code"] != int32(263) || replies[1]["code"] != int32(251) {
		t.Errorf("a statement over two deployments: %v", replies)
	}
	if ended := one.endings() + " " + two.endings(); strings.Count(ended, "commit") != 1 || strings.Count(ended, "abort") != 2 {
		t.Errorf("ended: %s", ended)
	}
	// One that finds what it needs on the first deployment does not need the other.
	ok(t, statements(t, g, 4, in("laid", bson.D{{Key: "find", Value: "c"}, {Key: "limit", Value: 1}}), commit))
}

// TestTransactionRetried: a client that begins anew after a transient error gets through.
func TestTransactionRetried(t *testing.T) {
	k := newKeeper(t, 100)
	client := connect(t, alone(k, ""))
	c := client.Database("laid").Collection("c")
	_, err := c.InsertMany(t.Context(), many(8))
	must(t, "insert", err)
	var tries int
	k.answers(func(cmd bson.M) (bson.D, bool) {
		if cmd["?"] == "update" && cmd["autocommit"] == false {
			tries++
		}
		return failure(112, "write conflict", "TransientTransactionError"), cmd["?"] == "update" && tries == 2
	})
	s, err := client.StartSession()
	must(t, "start a session", err)
	defer s.EndSession(t.Context())
	_, err = s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		return c.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "w", Value: 1}}}})
	})
	must(t, "transaction", err)
	if ended := strings.Split(k.endings(), "\n"); !slices.ContainsFunc(ended, func(s string) bool { return strings.HasPrefix(s, "commit") }) || tries != 6 {
		t.Errorf("%d updates were sent, it ended by %v", tries, ended)
	}
}

// TestTransactionLost: where a part's reply is lost nobody knows what was done, so the client is told to begin all of it again.
func TestTransactionLost(t *testing.T) {
	k := newKeeper(t, 100)
	k.uri = hasty(k.uri)
	client := connect(t, alone(k, ""))
	c := client.Database("laid").Collection("c")
	_, err := c.InsertMany(t.Context(), many(8))
	must(t, "insert", err)
	inTransaction(t, client, func(ctx context.Context, s *mongo.Session) {
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 20}, {Key: "u", Value: 1}})
		must(t, "insert", err)
		k.stop()
		_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 21}, {Key: "u", Value: 2}})
		var failed mongo.LabeledError
		if !errors.As(err, &failed) || !failed.HasErrorLabel("TransientTransactionError") || failed.HasErrorLabel("RetryableWriteError") {
			t.Errorf("a statement: %v", err)
		}
		if err := s.CommitTransaction(ctx); !errors.As(err, &failed) || !failed.HasErrorLabel("TransientTransactionError") {
			t.Errorf("the commit: %v", err)
		}
	})
}

// TestTransactionOnRouters: all of a transaction on a sharded cluster goes to one of its routers, and different ones to different routers.
func TestTransactionOnRouters(t *testing.T) {
	catalog, a, b := newKeeper(t, 100), newKeeper(t, 100), newKeeper(t, 100)
	both := strings.TrimSuffix(a.uri, patient) + "," + strings.TrimPrefix(b.uri, "mongodb://")
	g := inprocess.Open(t, fmt.Sprintf("backends: {one: {uri: %q}, routers: {uri: %q}}\ndatabases: {two: routers, \"*\": one}\n", catalog.uri, both))
	insert := in("two", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}})
	for number := range int64(40) {
		replies := statements(t, g, number+1, insert, insert, insert, commit, commit)
		ok(t, replies)
	}
	if x, y := a.endings(), b.endings(); strings.Count(x, "commit")+strings.Count(y, "commit") != 40 || x == "" || y == "" {
		t.Errorf("the routers ended %d and %d transactions", strings.Count(x, "commit"), strings.Count(y, "commit"))
	}
}

// TestTransactionOfEndedSession: a session that ends takes its open transaction with it, and not one that was committed.
func TestTransactionOfEndedSession(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	insert := in("plain", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}})
	for i, end := range []string{"endSessions", "killSessions"} {
		k.endings()
		ok(t, statements(t, g, int64(i*2+1), insert, insert))
		reply(t, g, bson.D{{Key: end, Value: bson.A{session(1).Value}}, {Key: "$db", Value: "admin"}})
		if ended := k.endings(); !strings.HasPrefix(ended, "abortTransaction") {
			t.Errorf("%s: ended by %q", end, ended)
		}
		ok(t, statements(t, g, int64(i*2+2), insert, commit))
		k.endings()
		reply(t, g, bson.D{{Key: end, Value: bson.A{session(1).Value}}, {Key: "$db", Value: "admin"}})
		if ended := k.endings(); ended != "" {
			t.Errorf("%s after the commit: %q", end, ended)
		}
	}
}

// TestTransactionJoins: an aggregation that joins a collection with a layout is a statement of the transaction, the join's finds too.
func TestTransactionJoins(t *testing.T) {
	k := newKeeper(t, 100)
	g := inprocess.Open(t, alone(k, ""))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "c"}, documents(4)}))
	reply(t, g, in("laid", bson.D{{Key: "insert", Value: "plain"}, documents(4)}))
	k.take()
	join := in("laid", bson.D{{Key: "aggregate", Value: "plain"}, {Key: "cursor", Value: bson.D{}}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: "c"}, {Key: "localField", Value: "u"}, {Key: "foreignField", Value: "u"}, {Key: "as", Value: "x"}}}}}}})
	replies := statements(t, g, 1, join, commit)
	ok(t, replies)
	if _, ids, _ := cursorOf(t, replies[0]); len(ids) != 4 {
		t.Errorf("the join gives %v", replies[0])
	}
	for i, cmd := range k.take() {
		if cmd["autocommit"] != false || (cmd["startTransaction"] == true) != (i == 0) {
			t.Errorf("statement %d is %v", i, cmd)
		}
	}
}
