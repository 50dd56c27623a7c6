package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Executor runs plans on backends.
type Executor struct {
	Backends map[string]backend.Backend
	// Gone reports whether a partition was dropped meanwhile; a stream that reaches such a target fails
	// instead of passing over documents in silence. Nil: never.
	Gone func(plan.Target) bool
	// Memory is the budget of batches that wait to be merged and of what is gathered. Nil: without limit.
	Memory *memory.Budget
}

// Fanout is how many targets of one command are talked to at a time.
const Fanout = 16

// Abilities tells what the backend of that name can do.
func (e *Executor) Abilities(name string) backend.Abilities {
	if b, ok := e.Backends[name]; ok {
		return b.Abilities()
	}
	return backend.Abilities{}
}

// Run sends one command to one backend and returns the reply, ok: 1 or not. The error is a *mongoerr.Error that names the backend.
func (e *Executor) Run(ctx context.Context, name string, req *backend.Request) (bson.Document, error) {
	b, ok := e.Backends[name]
	if !ok {
		return nil, mongoerr.New(mongoerr.HostNotFound, "backend %s is not configured", name)
	}
	reply, err := b.Run(ctx, req)
	if err != nil {
		return nil, noReply(ctx, name, err)
	}
	return reply, nil
}

// send sends a command to a target and returns a reply with ok: 1.
func (e *Executor) send(ctx context.Context, t plan.Target, c plan.Command) (bson.Document, error) {
	reply, err := e.Run(ctx, t.Backend, &backend.Request{Body: withTimeLimit(ctx, c).For(t.Namespace)})
	if err != nil {
		return nil, err
	}
	return reply, backend.Check(reply)
}

// withTimeLimit tells the target what is left of the command's time, so that work ends there too.
func withTimeLimit(ctx context.Context, c plan.Command) plan.Command {
	deadline, ok := ctx.Deadline()
	if !ok || c.Name == "getMore" {
		return c
	}
	left := max(1, time.Until(deadline).Milliseconds())
	return c.With(bsoncore.AppendInt64Element(nil, "maxTimeMS", left))
}

// noReply turns a backend's failure to answer into what the client gets.
func noReply(ctx context.Context, name string, err error) error {
	var known *mongoerr.Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return ended(ctx)
	}
	code := mongoerr.HostUnreachable
	if !errors.Is(err, backend.ErrUnavailable) {
		code = mongoerr.NetworkTimeout
	}
	return mongoerr.New(code, "backend %s: %s", name, err)
}

// ended is the error of a command whose context has ended: the cause where it is MongoDB's, else by the kind of end.
func ended(ctx context.Context) error {
	var known *mongoerr.Error
	cause := context.Cause(ctx)
	switch {
	case errors.As(cause, &known):
		return known
	case errors.Is(cause, context.DeadlineExceeded):
		return mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
	}
	return mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
}

// asCollection puts the application's namespace in the place of a partition's in an error: that one means nothing to it.
func asCollection(e *mongoerr.Error, partition backend.Namespace, collection string) *mongoerr.Error {
	renamed := *e
	renamed.Message = strings.ReplaceAll(e.Message, partition.String()+" ", collection+" ")
	return &renamed
}

// onTarget adds the target to an error that does not name it.
func onTarget(t plan.Target, err error) error {
	var known *mongoerr.Error
	if errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("run on %s: %w", t, err)
}
