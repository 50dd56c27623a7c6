package backend

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// ServerTime asks a server for its localTime with hello (https://www.mongodb.com/docs/manual/reference/command/hello/).
func ServerTime(ctx context.Context, b Backend) (time.Time, error) {
	reply, err := Ask(ctx, b, Command("admin", func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, "hello", 1) }))
	if err != nil {
		return time.Time{}, err
	}
	v, _ := bson.Get(reply, "localTime")
	local, ok := v.TimeOK()
	if !ok {
		return time.Time{}, errors.New("the reply to hello has no localTime")
	}
	return local, nil
}
