package ways

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TTL leaves it to the server: an index that lets documents expire.
func TTL() Way {
	return Way{Name: "ttl", About: "a TTL index on time: the server's own thread; not paced", Run: func(ctx context.Context, t *Target) error {
		c := t.collection(t.Data.End)
		if err := c.Indexes().DropOne(ctx, TimeField+"_1"); err != nil {
			return fmt.Errorf("drop the index on %s: %w", TimeField, err)
		}
		age := options.Index().SetExpireAfterSeconds(int32(time.Since(t.Data.Cutoff).Seconds()))
		_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: TimeField, Value: 1}}, Options: age})
		var refused mongo.CommandError
		if errors.As(err, &refused) {
			return &Refusal{Reason: fmt.Sprintf("the server takes no TTL index: %v", err)}
		}
		if err != nil {
			return fmt.Errorf("make the TTL index: %w", err)
		}
		return t.awaitGone(ctx)
	}}
}

// awaitGone waits until no old document is left.
func (t *Target) awaitGone(ctx context.Context) error {
	for {
		err := t.collection(t.Data.Cutoff).FindOne(ctx, bson.D{{Key: TimeField, Value: bson.D{{Key: "$lt", Value: t.Data.Cutoff}}}}).Err()
		if err == mongo.ErrNoDocuments {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for old documents: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
