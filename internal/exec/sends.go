package exec

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/plan"
)

// Sends is asked before each command to a partition where other gateways share the catalog: between a command's snapshot and the moment at which a part
// of it is sent this process can have stood still for any time.
type Sends interface {
	// Check returns the error of a gateway that must not touch partitions, since it can't know any more what became of them.
	Check() error
	// Begin is Check for a command that would make its collection were that not there, and fails with StaleConfig where the partition is going or gone;
	// until End the partition is not dropped.
	Begin(t plan.Target) (Sending, error)
	// Limit is how long such a command may take where it runs.
	Limit() time.Duration
}

// Sending is a command under way.
type Sending interface {
	// End tells that the command is over; without an answer it may still be running.
	End(answered bool)
}

// check asks whether a target may be touched. Plain collections always may.
func (e *Executor) check(t plan.Target) error {
	if e.Sends == nil || t.Logical == "" {
		return nil
	}
	return e.Sends.Check()
}

// begin asks whether a target may be touched by a command, which makes the target's collection or does not. The limit of one that does is to be
// sent with it; 0: none.
func (e *Executor) begin(ctx context.Context, t plan.Target, makes bool) (s Sending, limit time.Duration, err error) {
	if e.Sends == nil || t.Logical == "" {
		return unwatched{}, 0, nil
	}
	if !makes {
		return unwatched{}, 0, e.Sends.Check()
	}
	limit = e.Sends.Limit()
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Millisecond, time.Until(deadline))) // of one that is late already, too: it may be sent
	}
	s, err = e.Sends.Begin(t)
	return s, limit, err
}

// unwatched is a command that nobody waits for.
type unwatched struct{}

func (unwatched) End(bool) {}

// appendLimit appends maxTimeMS, by which a server ends a command that takes longer.
func appendLimit(body []byte, limit time.Duration) []byte {
	if limit == 0 {
		return body
	}
	return bsoncore.AppendInt64Element(body, "maxTimeMS", max(1, limit.Milliseconds()))
}

// makesCollection reports whether a write would make its collection: an insert, or an update with an upsert among its statements.
func makesCollection(name string, statements []bson.Document) bool {
	if name != "update" {
		return name == "insert"
	}
	for _, s := range statements {
		if upserts(s) {
			return true
		}
	}
	return false
}

func upserts(doc bson.Document) bool {
	v, _ := bson.Get(doc, "upsert")
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	n, ok := bson.NumberOf(v)
	return ok && !n.IsZero()
}
