package operators

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/backend/remote"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/kill"
	"oxbow/internal/operation"
)

// documents is how many documents a collection has on which something is killed. With few, a filter that takes its time makes up for it.
var documents = flag.Int("documents", 3000, "documents of the collection on which operations are killed")

// interrupted is the code of an operation that was killed.
const interrupted = 11601

// slowly is a filter on a field without an index, which matches half of the documents and takes its time for each.
func slowly() bson.D {
	if *documents > 1_000_000 {
		return bson.D{{Key: "flag", Value: 1}}
	}
	return slowlyBy(20_000)
}

// slowlyBy is such a filter that adds so many numbers for each document.
func slowlyBy(numbers int) bson.D {
	sum := bson.D{{Key: "$reduce", Value: bson.D{
		{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, numbers}}}}, {Key: "initialValue", Value: 0},
		{Key: "in", Value: bson.D{{Key: "$add", Value: bson.A{"$$value", "$$this", "$flag"}}}},
	}}}
	return bson.D{{Key: "flag", Value: 1}, {Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{sum, 0}}}}}
}

// deploymentAt opens the deployment at a URI.
func deploymentAt(t *testing.T, uri string) *deployment.Deployment {
	t.Helper()
	whole, err := remote.OpenNamed("deployment", uri, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d := deployment.Of("deployment", whole)
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), whole.Close()); err != nil {
			t.Errorf("close the deployment: %v", err)
		}
	})
	return d
}

// running waits until the deployment runs an application's operation of a kind, and returns it.
func running(t *testing.T, d *deployment.Deployment, kind string) operation.Operation {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		all, silent, err := operation.List(t.Context(), d)
		if err != nil || len(silent) > 0 {
			t.Fatalf("list: %v, silent %v", err, silent)
		}
		for _, o := range all {
			if o.Internal == "" && o.Kind == kind {
				return o
			}
		}
	}
	t.Fatalf("no %s was seen to run", kind)
	return operation.Operation{}
}

// long are the operations that are killed.
var long = map[string]func(context.Context, *mongo.Collection) error{
	"remove": func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.DeleteMany(ctx, slowly(), options.DeleteMany().SetComment("nightly cleanup"))
		return err
	},
	"update": func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.UpdateMany(ctx, slowly(), bson.D{{Key: "$inc", Value: bson.D{{Key: "seen", Value: 1}}}})
		return err
	},
	"find": func(ctx context.Context, c *mongo.Collection) error {
		cursor, err := c.Find(ctx, append(slowly(), bson.E{Key: "uid", Value: -1}))
		if err == nil {
			err = cursor.Close(ctx)
		}
		return err
	},
	"count": func(ctx context.Context, c *mongo.Collection) error {
		return c.Database().RunCommand(ctx, bson.D{{Key: "count", Value: c.Name()}, {Key: "query", Value: slowly()}}).Err()
	},
	"aggregate": func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.CountDocuments(ctx, slowly())
		return err
	},
}

// fetch asks for all that a cursor has left, which is a getMore that takes its time.
func fetch(ctx context.Context, cursor *mongo.Cursor) error {
	defer cursor.Close(context.Background())
	cursor.SetBatchSize(1_000_000)
	for cursor.Next(ctx) {
	}
	return cursor.Err()
}

// TestKill: what runs long in the engine, on a plain collection, on one with a layout, and behind another gateway, is listed with what it asks for and its
// plan, and is gone when it was killed, with MongoDB's reason for its client.
func TestKill(t *testing.T) {
	behind, _ := open(t, "catalog: behind\n")
	plain, _ := open(t, "")
	laid, _ := open(t, "collections: {im.msg: {hash: {field: uid, count: 4}}}\n")
	front, _ := openOn(t, fmt.Sprintf("{rs: {uri: %q}}", behind.URI()), "")
	for _, test := range []struct{ name, uri, on string }{
		{"plain", plain.URI(), plain.URI()}, {"laid out", laid.URI(), laid.URI()}, {"through a gateway", front.URI(), front.URI()}, {"behind a gateway", front.URI(), behind.URI()},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, test.uri).Database("im").Collection("msg")
			if err := c.Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
			fill(t, c, *documents)
			d := deploymentAt(t, test.on)
			if *documents < 1_000_000 {
				cursor, err := c.Find(t.Context(), slowly(), options.Find().SetBatchSize(2))
				if err != nil {
					t.Fatal(err)
				}
				testKill(t, d, "find", func() error { return fetch(t.Context(), cursor) })
			}
			for kind, run := range long {
				testKill(t, d, kind, func() error { return run(t.Context(), c) })
			}
		})
	}
}

// testKill runs something, and kills it.
func testKill(t *testing.T, d *deployment.Deployment, kind string, run func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	o := running(t, d, kind)
	if err := operation.Explain(t.Context(), d, &o); err != nil {
		t.Errorf("%s: %v", kind, err)
	}
	if !o.Scans() || o.Namespace != "im.msg" || o.Hidden || !strings.Contains(o.Shape, "flag: ?") {
		t.Errorf("%s is shown as %+v", kind, o)
	}
	gone, err := operation.Kill(t.Context(), d, &o)
	if err != nil || !gone {
		t.Errorf("%s: gone %v, %v", kind, gone, err)
	}
	var failed mongo.ServerError
	if err := <-ended; !errors.As(err, &failed) || !failed.HasErrorCode(interrupted) {
		t.Errorf("%s ended with %v, want Interrupted", kind, err)
	}
}

// TestPolicyKills: a remove on a field without an index, run on the server itself past the gateway and its guard, is refused at the gateway, and killed by
// policy where it runs; what an index serves, what is small and what its comment allows is left alone.
func TestPolicyKills(t *testing.T) {
	behind, _ := open(t, "catalog: behind\n")
	front, _ := openOn(t, fmt.Sprintf("{rs: {uri: %q}}", behind.URI()), "guard: {documents: 1000}\n")
	direct := connect(t, behind.URI()).Database("im").Collection("msg")
	fill(t, direct, *documents)
	_, err := connect(t, front.URI()).Database("im").Collection("msg").DeleteMany(t.Context(), slowly())
	wantRefused(t, "at the gateway", err, `createIndexes: "msg"`, `"flag"`)

	d := deploymentAt(t, behind.URI())
	var noted []kill.Event
	job, err := kill.New(kill.Options{
		Deployment: d, Every: 20 * time.Millisecond, Note: func(e kill.Event) { noted = append(noted, e) },
		Policies: []kill.Policy{
			{Name: "tell", Documents: 1000, Older: time.Millisecond, Action: kill.Log},
			{Name: "end", Kinds: []string{"remove"}, Namespaces: []string{"im.*"}, Documents: 1000, Older: 50 * time.Millisecond, Action: kill.Kill},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- long["remove"](t.Context(), direct) }()
	step := func(out maintain.Outcome) maintain.Outcome {
		next, err := job.Step(t.Context(), out.Checkpoint, nil)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	var out maintain.Outcome
	killed := func() bool {
		for _, e := range noted {
			if e.Action == "kill" {
				return true
			}
		}
		return false
	}
	for until := time.Now().Add(time.Minute); !killed() && time.Now().Before(until); {
		out = step(out)
	}
	var failed mongo.ServerError
	if err := <-ended; !errors.As(err, &failed) || !failed.HasErrorCode(interrupted) {
		t.Fatalf("the remove ended with %v, want Interrupted", err)
	}
	events, err := kill.Events(out.Checkpoint)
	if err != nil || len(events) != len(noted) || len(events) == 0 {
		t.Fatalf("the history has %d events of %d, %v", len(events), len(noted), err)
	}
	e := events[len(events)-1]
	if e.Policy != "end" || !e.Gone || e.Kind != "remove" || e.Namespace != "im.msg" || e.App != "test" || !strings.Contains(e.Reason, "COLLSCAN") {
		t.Errorf("the history ends with %+v", e)
	}
	t.Logf("%s: gone in %d ms", e.Reason, e.Took)
	left, err := direct.EstimatedDocumentCount(t.Context())
	if err != nil || left <= int64(*documents)/2 {
		t.Errorf("%d of %d documents are left, %v: the remove came to its end", left, *documents, err)
	}

	noted = nil
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := direct.DeleteMany(ctx, slowly(), options.DeleteMany().SetComment("oxbow:allow-scan"))
		ended <- err
	}()
	running(t, d, "remove")
	for range 10 {
		out = step(out)
	}
	if len(noted) > 0 {
		t.Errorf("what its comment allows was dealt with: %+v", noted)
	}
	o := running(t, d, "remove")
	if gone, err := operation.Kill(t.Context(), d, &o); err != nil || !gone {
		t.Errorf("gone %v, %v", gone, err)
	}
	<-ended
	stop()
}

// TestPolicyJob: a gateway's job ends a remove that was run on the server itself, past the gateway, and keeps what it did in its history.
func TestPolicyJob(t *testing.T) {
	behind, _ := open(t, "catalog: behind\n")
	_, log := openOn(t, fmt.Sprintf("{rs: {uri: %q}}", behind.URI()),
		"jobs: {runaway: {kind: kill, on: im.msg, with: {kinds: [remove], documents: 1000, older: 1s, action: kill}}}\n")
	c := connect(t, behind.URI()).Database("im").Collection("msg")
	fill(t, c, 3000)
	var failed mongo.ServerError
	if _, err := c.DeleteMany(t.Context(), slowlyBy(40_000)); !errors.As(err, &failed) || !failed.HasErrorCode(interrupted) {
		t.Fatalf("the remove ended with %v, want Interrupted", err)
	}
	for until := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), "operation without an index killed"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the log does not tell of the kill:\n%s", log.String())
		}
	}
}
