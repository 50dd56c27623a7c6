package passthrough

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const theirCursor = int64(4711)

func token(n int) bson.D { return bson.D{{Key: "_data", Value: fmt.Sprint(n)}} }

// stream answers a change stream: one change, and a token with every batch.
func stream(t *testing.T) *member {
	t.Helper()
	batches := 0
	batch := func(field string, docs bson.A, collection any, db any) (bson.D, error) {
		batches++
		return bson.D{{Key: "cursor", Value: bson.D{{Key: field, Value: docs}, {Key: "id", Value: theirCursor},
			{Key: "ns", Value: fmt.Sprintf("%v.%v", db, collection)}, {Key: "postBatchResumeToken", Value: token(batches)}}}}, nil
	}
	return newMember(t, map[string]func(bson.M) (bson.D, error){
		"aggregate": func(cmd bson.M) (bson.D, error) {
			collection := cmd["aggregate"]
			if _, ok := collection.(string); !ok {
				collection = "$cmd.aggregate"
			}
			return batch("firstBatch", bson.A{}, collection, cmd["$db"])
		},
		"getMore": func(cmd bson.M) (bson.D, error) {
			if cmd["getMore"] != theirCursor {
				return nil, fmt.Errorf("getMore of cursor %v", cmd["getMore"])
			}
			docs := bson.A{}
			if batches == 1 {
				docs = bson.A{bson.D{{Key: "_id", Value: token(batches + 1)}, {Key: "operationType", Value: "insert"}}}
			}
			return batch("nextBatch", docs, cmd["collection"], cmd["$db"])
		},
		"killCursors": func(bson.M) (bson.D, error) {
			return bson.D{{Key: "cursorsKilled", Value: bson.A{theirCursor}}, {Key: "cursorsNotFound", Value: bson.A{}}, {Key: "cursorsAlive", Value: bson.A{}}, {Key: "cursorsUnknown", Value: bson.A{}}}, nil
		},
	})
}

// TestChangeStream: a stream's changes, its resume tokens and the time it waits pass; on a collection and on a database.
func TestChangeStream(t *testing.T) {
	type watcher interface {
		Watch(ctx context.Context, pipeline any, opts ...options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error)
	}
	for _, on := range []string{"collection", "database"} {
		one := stream(t)
		client := serve(t, one, deployment(t))
		var w watcher = client.Database("one")
		if on == "collection" {
			w = client.Database("one").Collection("c")
		}
		s, err := w.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(300e6))
		must(t, "watch a "+on, err)
		if s.TryNext(t.Context()) || fmt.Sprint(s.ResumeToken()) != `{"_data": "1"}` {
			t.Errorf("%s: an empty batch gives %v, token %v, %v", on, s.Current, s.ResumeToken(), s.Err())
		}
		if !s.TryNext(t.Context()) || fmt.Sprint(s.ResumeToken()) != `{"_data": "2"}` || s.Current.Lookup("operationType").StringValue() != "insert" {
			t.Errorf("%s: the change gives %v, token %v, %v", on, s.Current, s.ResumeToken(), s.Err())
		}
		if s.TryNext(t.Context()) || fmt.Sprint(s.ResumeToken()) != `{"_data": "3"}` {
			t.Errorf("%s: an empty batch behind it gives %v, token %v, %v", on, s.Current, s.ResumeToken(), s.Err())
		}
		must(t, "close", s.Close(t.Context()))
		want := "aggregate\ngetMore maxTimeMS:300\ngetMore maxTimeMS:300\nkillCursors"
		if got := one.seen("maxTimeMS"); got != want {
			t.Errorf("%s: sent\n%s\nwant\n%s", on, got, want)
		}
	}
}

// TestChangeStreamRefused: a stream that would show partitions or the catalog is refused.
func TestChangeStreamRefused(t *testing.T) {
	one := stream(t)
	client := serve(t, one, deployment(t))
	const notSupported = 115
	if _, err := client.Database("laid").Watch(t.Context(), mongo.Pipeline{}); codeOf(err) != notSupported {
		t.Errorf("a database with partitions: %v", err)
	}
	if _, err := client.Watch(t.Context(), mongo.Pipeline{}); codeOf(err) != notSupported {
		t.Errorf("a deployment: %v", err)
	}
	if _, err := client.Database("laid").Collection("c").Watch(t.Context(), mongo.Pipeline{}); err == nil {
		t.Error("a collection with a layout is watched")
	}
	if got := one.seen(); got != "" {
		t.Errorf("sent\n%s", got)
	}
}
