package operators

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// commands are the kinds that a guard concerns, on a field that has no index at first.
var commands = map[string]func(context.Context, *mongo.Collection, bson.D, any) error{
	"remove": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		_, err := c.DeleteMany(ctx, filter, options.DeleteMany().SetComment(comment))
		return err
	},
	"update": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		_, err := c.UpdateMany(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}, options.UpdateMany().SetComment(comment))
		return err
	},
	"findAndModify": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}
		return c.FindOneAndUpdate(ctx, filter, set, options.FindOneAndUpdate().SetComment(comment)).Err()
	},
	"distinct": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		return c.Distinct(ctx, "flag", filter, options.Distinct().SetComment(comment)).Err()
	},
	"find": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		return c.FindOne(ctx, filter, options.FindOne().SetComment(comment)).Err()
	},
	"count": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		return c.Database().RunCommand(ctx, bson.D{{Key: "count", Value: c.Name()}, {Key: "query", Value: filter}, {Key: "comment", Value: comment}}).Err()
	},
	"aggregate": func(ctx context.Context, c *mongo.Collection, filter bson.D, comment any) error {
		cursor, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: filter}}, {{Key: "$count", Value: "n"}}}, options.Aggregate().SetComment(comment))
		if err == nil {
			err = cursor.Close(ctx)
		}
		return err
	},
}

// wantRefused checks that a command was refused, and that the error says how to go on.
func wantRefused(t *testing.T, what string, err error, wants ...string) {
	t.Helper()
	var refused mongo.ServerError
	if !errors.As(err, &refused) || !refused.HasErrorCode(291) {
		t.Errorf("%s: %v, want NoQueryExecutionPlans", what, err)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %s", what, err, want)
		}
	}
}

// TestGuard: what no index serves is refused on a large collection, plain or laid out, embedded or on another server; it goes through with an index, on
// a small collection, by _id, without a filter, and where its comment allows it.
func TestGuard(t *testing.T) {
	const rules = "guard: {documents: 50, find: refuse, count: refuse, aggregate: refuse, distinct: refuse}\n"
	behind, _ := open(t, "catalog: behind\n")
	for name, client := range map[string]*mongo.Client{
		"plain":  clientOf(t, "", rules),
		"hash":   clientOf(t, "", rules+"collections: {im.msg: {hash: {field: uid, count: 4}}}\n"),
		"time":   clientOf(t, "", rules+"collections: {im.msg: {time: {field: _id, unit: s, every: minute}}}\n"),
		"remote": clientOf(t, fmt.Sprintf("{rs: {uri: %q}}", behind.URI()), rules),
	} {
		t.Run(name, func(t *testing.T) { testGuard(t, client.Database("im").Collection("msg")) })
	}
}

// clientOf opens a gateway, on an embedded backend where no others are given, and a client of it.
func clientOf(t *testing.T, backends, more string) *mongo.Client {
	t.Helper()
	if backends == "" {
		g, _ := open(t, more)
		return connect(t, g.URI())
	}
	g, _ := openOn(t, backends, more)
	return connect(t, g.URI())
}

func testGuard(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	unindexed := bson.D{{Key: "flag", Value: bson.D{{Key: "$gt", Value: 5}}}}
	fill(t, c, 40)
	for kind, run := range commands {
		if err := run(ctx, c, unindexed, nil); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			t.Errorf("%s on a small collection: %v", kind, err)
		}
	}
	if _, err := c.DeleteMany(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Drop(ctx); err != nil { // which makes the guard look again at how large it is
		t.Fatal(err)
	}
	fill(t, c, 400)
	command := `db.getSiblingDB("im").runCommand({createIndexes: "msg", indexes: [{key: {"flag": 1}, name: "flag_1"}]})`
	refused := func() {
		for kind, run := range commands {
			wantRefused(t, kind, run(ctx, c, unindexed, nil), command, "400 documents", "im.msg", `"oxbow:allow-scan"`)
		}
	}
	allowed := func(what string, filter bson.D, comment any) {
		for kind, run := range commands {
			if err := run(ctx, c, filter, comment); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
				t.Errorf("%s %s: %v", kind, what, err)
			}
		}
	}
	refused()
	allowed("with a comment", unindexed, "monthly report, oxbow:allow-scan")
	allowed("by _id", bson.D{{Key: "_id", Value: 100_000}, {Key: "flag", Value: 5}}, nil)
	if n, err := c.EstimatedDocumentCount(ctx); err != nil || n != 400 {
		t.Fatalf("%d documents are left, %v", n, err)
	}
	if cursor, err := c.Find(ctx, bson.D{}); err != nil {
		t.Errorf("a find of everything: %v", err)
	} else if err := cursor.Close(ctx); err != nil {
		t.Error(err)
	}
	cursor, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "text", Value: -1}}).SetLimit(3))
	if err == nil {
		cursor.Close(ctx)
	}
	wantRefused(t, "a sort", err, `{key: {"text": -1}, name: "text_-1"}`)
	if _, err := c.DeleteOne(ctx, bson.D{{Key: "flag", Value: 7}}); err != nil {
		t.Errorf("a delete of one document: %v", err)
	}

	if _, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "flag", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	allowed("with an index", unindexed, nil)
	allowed("with an index, known by its shape", unindexed, nil)
	if err := c.Indexes().DropOne(ctx, "flag_1"); err != nil {
		t.Fatal(err)
	}
	refused()
}

// TestGuardBatch: of a batch with one statement that no index serves nothing is run.
func TestGuardBatch(t *testing.T) {
	g, _ := open(t, "guard: {documents: 50}\n")
	c := connect(t, g.URI()).Database("im").Collection("msg")
	fill(t, c, 200)
	err := c.Database().RunCommand(t.Context(), bson.D{{Key: "delete", Value: "msg"}, {Key: "deletes", Value: bson.A{
		bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "limit", Value: 0}},
		bson.D{{Key: "q", Value: bson.D{{Key: "flag", Value: 1}}}, {Key: "limit", Value: 0}},
	}}}).Err()
	wantRefused(t, "the batch", err)
	if n, err := c.EstimatedDocumentCount(t.Context()); err != nil || n != 200 {
		t.Errorf("%d documents are left, %v", n, err)
	}
}

// TestGuardPrunes: the documents that count are those of the partitions that a command goes to.
func TestGuardPrunes(t *testing.T) {
	g, _ := open(t, "guard: {documents: 150, find: refuse}\ncollections: {im.msg: {hash: {field: uid, count: 4}}}\n")
	c := connect(t, g.URI()).Database("im").Collection("msg")
	fill(t, c, 400)
	err := c.FindOne(t.Context(), bson.D{{Key: "uid", Value: 5}, {Key: "flag", Value: 7}}).Err()
	if !errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("in one partition of about 100 documents: %v", err)
	}
	wantRefused(t, "in all partitions", c.FindOne(t.Context(), bson.D{{Key: "flag", Value: 7}}).Err())
}

// TestGuardLogs: what is only logged runs, and is in the log once, without its values.
func TestGuardLogs(t *testing.T) {
	g, log := open(t, "guard: {documents: 50, remove: log, update: allow}\n")
	c := connect(t, g.URI()).Database("im").Collection("msg")
	fill(t, c, 200)
	for range 3 {
		if _, err := c.DeleteMany(t.Context(), bson.D{{Key: "text", Value: "a secret"}}); err != nil {
			t.Fatal(err)
		}
		if err := commands["update"](t.Context(), c, bson.D{{Key: "other", Value: 1}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), `"command without an index logged"`); n != 1 {
		t.Errorf("%d lines in the log, want one:\n%s", n, log)
	}
	if !strings.Contains(log.String(), `shape="{text: ?}"`) || strings.Contains(log.String(), "a secret") {
		t.Errorf("the log has not the shape alone:\n%s", log)
	}
}
