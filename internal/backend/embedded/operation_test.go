package embedded

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// filled returns a backend with a collection d.c of n documents.
func filled(t *testing.T, n int) *Backend {
	t.Helper()
	b := openIn(t, Store{Dir: "db", FS: vfs.NewMem()})
	var docs driver.A
	for i := range n {
		docs = append(docs, driver.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 10}})
	}
	mustReply(t, b, encoded(t, driver.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "d"}}))
	return b
}

var (
	scan    = driver.D{{Key: "find", Value: "c"}, {Key: "filter", Value: driver.D{{Key: "a", Value: -1}}}, {Key: "$db", Value: "d"}}
	session = driver.E{Key: "lsid", Value: driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}}}}
	retried = driver.D{{Key: "update", Value: "c"}, {Key: "updates", Value: driver.A{driver.D{
		{Key: "q", Value: driver.D{{Key: "a", Value: -1}}}, {Key: "u", Value: driver.D{{Key: "$set", Value: driver.D{{Key: "b", Value: 1}}}}}}}},
		session, {Key: "txnNumber", Value: int64(1)}, {Key: "$db", Value: "d"}}
)

// TestShutdownInterrupts: what runs while the backend closes ends with MongoDB's error, and a retryable write says that it is one.
func TestShutdownInterrupts(t *testing.T) {
	b := filled(t, 5000)
	closing := &atomic.Bool{}
	closing.Store(true)
	op := operation{Context: context.Background(), closing: closing}
	if _, err := b.dispatch(op, &backend.Request{Body: encoded(t, scan)}); !mongoerr.Is(err, mongoerr.InterruptedAtShutdown) {
		t.Errorf("a scan ends with %v", err)
	}
	_, err := b.dispatch(op, &backend.Request{Body: encoded(t, retried)})
	e := mongoerr.From(err)
	if e.Code != mongoerr.InterruptedAtShutdown || len(e.Labels) != 1 || e.Labels[0] != "RetryableWriteError" {
		t.Errorf("a retryable write ends with %v, labels %q", err, e.Labels)
	}
	labels, ok := bson.Get(errorReply(err), "errorLabels")
	if _, isArray := labels.ArrayOK(); !ok || !isArray {
		t.Errorf("the reply's labels are %v", labels)
	}
}

// TestEndedContexts: a context's end is told as MongoDB tells it.
func TestEndedContexts(t *testing.T) {
	b := filled(t, 5000)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancelLate()
	for _, test := range []struct {
		ctx  context.Context
		want mongoerr.Code
	}{{cancelled, mongoerr.Interrupted}, {late, mongoerr.MaxTimeMSExpired}} {
		for _, command := range []driver.D{scan, retried} {
			reply, err := b.Run(test.ctx, &backend.Request{Body: encoded(t, command)})
			if err != nil {
				t.Fatal(err)
			}
			if err := backend.Check(reply); !mongoerr.Is(err, test.want) {
				t.Errorf("%s ends with %v, not %s", command[0].Key, err, test.want)
			}
		}
	}
}

// TestReopened: what was acknowledged before Close is there after Open, and the old backend is of no more use.
func TestReopened(t *testing.T) {
	store := Store{Dir: "db", FS: vfs.NewMem()}
	first, err := Open(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	insert := encoded(t, driver.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: driver.A{driver.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "d"}})
	mustReply(t, first, insert)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Run(context.Background(), &backend.Request{Body: insert}); !errors.Is(err, backend.ErrUnavailable) || !mongoerr.Is(err, mongoerr.ShutdownInProgress) {
		t.Errorf("a closed backend says %v", err)
	}
	second := openIn(t, store)
	reply := mustReply(t, second, encoded(t, driver.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "d"}}))
	if n, _ := bson.Get(reply, "n"); n.AsInt64() != 1 {
		t.Errorf("%s documents after opening again", n)
	}
}

// TestFindByIDIsLean: the path that is taken most allocates the reply, the command's form and the namespace, and no more.
func TestFindByIDIsLean(t *testing.T) {
	b := filled(t, 10)
	req := &backend.Request{Body: encoded(t, driver.D{{Key: "find", Value: "c"}, {Key: "filter", Value: driver.D{{Key: "_id", Value: 3}}},
		{Key: "limit", Value: 1}, {Key: "singleBatch", Value: true}, session, {Key: "$db", Value: "d"}})}
	allocations := testing.AllocsPerRun(100, func() {
		if reply, err := b.Run(context.Background(), req); err != nil || backend.Check(reply) != nil {
			t.Fatal(err, reply)
		}
	})
	if allocations > 6 {
		t.Errorf("%v allocations", allocations)
	}
}
