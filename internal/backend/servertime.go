package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// ServerTime asks a server for its localTime with hello (https://www.mongodb.com/docs/manual/reference/command/hello/).
func ServerTime(ctx context.Context, b Backend) (time.Time, error) {
	hello := bsoncore.NewDocumentBuilder().AppendInt32("hello", 1).AppendString("$db", "admin").Build()
	reply, err := b.Run(ctx, &Request{Body: bson.Document(hello)})
	if err == nil {
		err = Check(reply)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	v, _ := bson.Get(reply, "localTime")
	local, ok := v.TimeOK()
	if !ok {
		return time.Time{}, errors.New("the reply to hello has no localTime")
	}
	return local, nil
}
