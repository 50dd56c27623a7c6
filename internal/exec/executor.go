package exec

import (
	"context"
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
	// Sends is asked before each command to a partition. Nil: this gateway has the catalog for itself.
	Sends Sends
	// Width is how many partitions of a collection one command is sent to at a time; 0: DefaultWidth. Nil: DefaultWidth for all.
	Width func(collection string) int
	// Lanes bounds what all commands together send at a time. Nil: without limit.
	Lanes *Lanes
	// Memory is the budget of batches that wait to be merged and of what is gathered. Nil: without limit.
	Memory *memory.Budget
}

// Abilities tells what the backend of that name can do.
func (e *Executor) Abilities(name string) backend.Abilities {
	if b, ok := e.Backends[name]; ok {
		return b.Abilities()
	}
	return backend.Abilities{}
}

// Run sends one command to one backend and returns the reply, ok: 1 or not. The error is a *mongoerr.Error that names the backend.
func (e *Executor) Run(ctx context.Context, name string, req *backend.Request) (bson.Document, error) {
	if x := exchangeOf(ctx); x != nil {
		return x.through(ctx, e, name, req, false)
	}
	return e.run(ctx, name, req)
}

// Forward is Run for a command as the client sent it, of which the reply is the client's as it comes.
func (e *Executor) Forward(ctx context.Context, name string, req *backend.Request) (bson.Document, error) {
	if x := exchangeOf(ctx); x != nil {
		return x.through(ctx, e, name, req, true)
	}
	return e.run(ctx, name, req)
}

func (e *Executor) run(ctx context.Context, name string, req *backend.Request) (bson.Document, error) {
	b, ok := e.Backends[name]
	if !ok {
		return nil, mongoerr.New(mongoerr.HostNotFound, "backend %s is not configured", name)
	}
	reply, err := b.Run(ctx, req)
	if err != nil {
		return nil, backend.NoReply(ctx, name, err)
	}
	return reply, nil
}

// send sends a command to a target and returns a reply with ok: 1, for which the account is charged.
func (e *Executor) send(ctx context.Context, account *memory.Account, t plan.Target, c plan.Command) (bson.Document, error) {
	if err := e.check(t); err != nil {
		return nil, err
	}
	reply, err := e.Run(ctx, t.Backend, &backend.Request{Body: withTimeLimit(ctx, c).For(t.Namespace), Memory: account})
	if err != nil {
		return nil, err
	}
	if err := backend.Check(reply); err != nil {
		return nil, e.refused(t, err)
	}
	return reply, nil
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
