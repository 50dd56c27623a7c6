package passthrough

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// deployment answers what a transaction needs.
func deployment(t *testing.T) *member {
	return newMember(t, map[string]func(bson.M) (bson.D, error){
		"insert": written, "find": found, "commitTransaction": nothing, "abortTransaction": nothing, "count": written,
	})
}

// inTransaction runs statements in a transaction that stays open.
func inTransaction(t *testing.T, client *mongo.Client, run func(ctx context.Context, s *mongo.Session)) {
	t.Helper()
	s, err := client.StartSession()
	must(t, "start a session", err)
	defer s.EndSession(t.Context())
	must(t, "start a transaction", s.StartTransaction())
	run(mongo.NewSessionContext(t.Context(), s), s)
}

func codeOf(err error) int {
	var e mongo.ServerError
	if errors.As(err, &e) && len(e.ErrorCodes()) > 0 {
		return e.ErrorCodes()[0]
	}
	return 0
}

// TestTransaction: a transaction's statements and its end reach the deployment as the driver sent them, and no other.
func TestTransaction(t *testing.T) {
	one, two := deployment(t), deployment(t)
	client := serve(t, one, two)
	c := client.Database("one").Collection("c")
	for _, end := range []string{"commitTransaction", "abortTransaction"} {
		inTransaction(t, client, func(ctx context.Context, s *mongo.Session) {
			_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
			must(t, "insert", err)
			must(t, "find", c.FindOne(ctx, bson.D{}).Err())
			if end == "commitTransaction" {
				must(t, end, s.CommitTransaction(ctx))
			} else {
				must(t, end, s.AbortTransaction(ctx))
			}
		})
		want := "insert autocommit:false startTransaction:true\nfind autocommit:false\n" + end + " autocommit:false"
		if got := one.seen("autocommit", "startTransaction"); got != want {
			t.Errorf("sent\n%s\nwant\n%s", got, want)
		}
	}
	if got := two.seen(); got != "" {
		t.Errorf("the other deployment was sent\n%s", got)
	}
}

// TestTransactionRefused: what would not be one transaction is refused before anything is sent.
func TestTransactionRefused(t *testing.T) {
	one, two := deployment(t), deployment(t)
	client := serve(t, one, two)
	insert := func(ctx context.Context, database string) error {
		_, err := client.Database(database).Collection("c").InsertOne(ctx, bson.D{{Key: "u", Value: 1}})
		return err
	}
	const notInTransaction = 263
	inTransaction(t, client, func(ctx context.Context, _ *mongo.Session) {
		must(t, "insert", insert(ctx, "one"))
		if err := insert(ctx, "two"); codeOf(err) != notInTransaction {
			t.Errorf("a second deployment: %v", err)
		}
	})
	if got := one.seen(); !strings.HasPrefix(got, "insert") {
		t.Errorf("sent\n%s", got)
	}
	two.seen()
	inTransaction(t, client, func(ctx context.Context, _ *mongo.Session) {
		if err := insert(ctx, "engine"); codeOf(err) != notInTransaction {
			t.Errorf("the engine: %v", err)
		}
	})
	inTransaction(t, client, func(ctx context.Context, _ *mongo.Session) {
		if err := client.Database("one").RunCommand(ctx, bson.D{{Key: "count", Value: "c"}}).Err(); codeOf(err) != notInTransaction {
			t.Errorf("count: %v", err)
		}
	})
	// The driver ends each in the end, and nobody knows one that never began.
	if got := strings.ReplaceAll(one.seen()+"\n"+two.seen(), "abortTransaction", ""); strings.TrimSpace(got) != "" {
		t.Errorf("sent\n%s", got)
	}
}

// TestTransactionOfAnotherGateway: the end of a transaction that this gateway never saw reaches the deployment that has it.
func TestTransactionOfAnotherGateway(t *testing.T) {
	one := newMember(t, map[string]func(bson.M) (bson.D, error){"commitTransaction": unknownTransaction, "abortTransaction": unknownTransaction})
	two := deployment(t)
	// The driver sends no end of a transaction without statements, so the command is put together here.
	end := func(two *member) bson.M {
		session := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
		body, err := bson.Marshal(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "lsid", Value: session}, {Key: "txnNumber", Value: int64(5)},
			{Key: "autocommit", Value: false}, {Key: "$db", Value: "admin"}})
		must(t, "encode", err)
		reply, err := inprocess.Open(t, configuration("local", one, two)).Run(t.Context(), &backend.Request{Body: body})
		must(t, "commitTransaction", err)
		var got bson.M
		must(t, "decode", bson.Unmarshal(reply, &got))
		return got
	}
	if got := end(two); got["ok"] != 1.0 {
		t.Errorf("the end of a transaction that a deployment has: %v", got)
	}
	if a, b := one.seen("txnNumber"), two.seen("txnNumber"); a != "commitTransaction txnNumber:5" || b != a {
		t.Errorf("sent\n%s\nand\n%s", a, b)
	}
	nowhere := newMember(t, map[string]func(bson.M) (bson.D, error){"commitTransaction": unknownTransaction})
	if got := end(nowhere); got["code"] != int32(251) {
		t.Errorf("the end of a transaction that nobody has: %v", got)
	}
}

// TestTransactionLosesItsDeployment: the application is told what to begin again: all of a transaction that has not come to its end.
func TestTransactionLosesItsDeployment(t *testing.T) {
	one := deployment(t)
	one.uri = hasty(one.uri)
	client := serve(t, one, deployment(t))
	c := client.Database("one").Collection("c")
	inTransaction(t, client, func(ctx context.Context, s *mongo.Session) {
		_, err := c.InsertOne(ctx, bson.D{})
		must(t, "insert", err)
		one.stop()
		_, err = c.InsertOne(ctx, bson.D{})
		var failed mongo.LabeledError
		if !errors.As(err, &failed) || !failed.HasErrorLabel("TransientTransactionError") || failed.HasErrorLabel("RetryableWriteError") {
			t.Errorf("a statement: %v", err)
		}
		err = s.CommitTransaction(ctx)
		if !errors.As(err, &failed) || !failed.HasErrorLabel("UnknownTransactionCommitResult") || failed.HasErrorLabel("TransientTransactionError") {
			t.Errorf("the commit: %v", err)
		}
	})
}
