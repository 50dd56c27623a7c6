package badinput

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// cursorReply is what find and getMore answer.
type cursorReply struct {
	Cursor struct {
		ID    int64    `bson:"id"`
		First []bson.M `bson:"firstBatch"`
		Next  []bson.M `bson:"nextBatch"`
	} `bson:"cursor"`
}

// A getMore with the id of no cursor, or of one that another session opened, fails; the cursor itself goes on for whom it belongs to.
func TestCursorOfAnother(t *testing.T) {
	client := serve(t)
	db := client.Database("d")
	for _, name := range []string{"plain", "bydate", "byhash"} {
		t.Run(name, func(t *testing.T) {
			stored(t, db.Collection(name), bson.M{"_id": 1, "at": at(1)}, bson.M{"_id": 2, "at": at(2)}, bson.M{"_id": 3, "at": at(3)})
			getMore := func(ctx context.Context, id int64) (*cursorReply, error) {
				var r cursorReply
				err := db.RunCommand(ctx, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: name}}).Decode(&r)
				return &r, err
			}
			if _, err := getMore(t.Context(), 4711); codeOf(err) != 43 {
				t.Errorf("no cursor: %v", err)
			}
			mine, other := session(t, client), session(t, client)
			var opened cursorReply
			find := bson.D{{Key: "find", Value: name}, {Key: "batchSize", Value: 1}}
			if err := db.RunCommand(mongo.NewSessionContext(t.Context(), mine), find).Decode(&opened); err != nil {
				t.Fatal(err)
			}
			// 50801: the cursor was created in another session.
			if _, err := getMore(mongo.NewSessionContext(t.Context(), other), opened.Cursor.ID); codeOf(err) != 50801 {
				t.Errorf("another session's cursor: %v", err)
			}
			rest, err := getMore(mongo.NewSessionContext(t.Context(), mine), opened.Cursor.ID)
			if err != nil || len(opened.Cursor.First)+len(rest.Cursor.Next) != 3 || rest.Cursor.ID != 0 {
				t.Errorf("the cursor's own session gets %v, %v", rest, err)
			}
		})
	}
}

func session(t *testing.T, client *mongo.Client) *mongo.Session {
	t.Helper()
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.EndSession(context.Background()) })
	return s
}
