package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// HelloTime returns a function for Options.BackendTime that asks a backend's server for its localTime with hello
// (https://www.mongodb.com/docs/manual/reference/command/hello/). An embedded backend has the clock of this machine.
func HelloTime(backends map[string]backend.Backend) func(ctx context.Context, name string) (time.Time, error) {
	at, hello := bsoncore.AppendDocumentStart(nil)
	hello = bsoncore.AppendInt32Element(hello, "hello", 1)
	hello = bsoncore.AppendStringElement(hello, "$db", "admin")
	hello, _ = bsoncore.AppendDocumentEnd(hello, at)
	return func(ctx context.Context, name string) (time.Time, error) {
		b, ok := backends[name]
		if !ok {
			return time.Time{}, fmt.Errorf("backend %s is not open", name)
		}
		if b.Abilities().Embedded {
			return time.Now(), nil
		}
		reply, err := b.Run(ctx, &backend.Request{Body: hello})
		if err == nil {
			err = backend.Check(reply)
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
}
