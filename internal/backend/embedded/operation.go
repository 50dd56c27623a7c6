package embedded

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// operation is the context of one running command: the caller's, which also ends when the backend is closing.
type operation struct {
	context.Context
	closing *atomic.Bool
}

// Err reports InterruptedAtShutdown while the backend closes, so that long scans end; otherwise the caller's own error.
func (op operation) Err() error {
	if op.closing.Load() {
		return errAtShutdown
	}
	return op.Context.Err()
}

var errAtShutdown = mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")

// errTimeLimit is the cause of an operation that its own maxTimeMS ended.
var errTimeLimit = mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")

// limited bounds the operation by maxTimeMS; 0 is no bound, and one that the caller's context has already needs no second timer. The function returned
// must be called when the operation ends.
func (op operation) limited(limit time.Duration) (operation, context.CancelFunc) {
	if limit <= 0 {
		return op, func() {}
	}
	if until, ok := op.Deadline(); ok && time.Until(until) <= limit {
		return op, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(op.Context, limit, errTimeLimit)
	op.Context = ctx
	return op, cancel
}

// reading prepares a command that reads: its time limit and its read concern.
func (op operation) reading(g *statement.Generic) (operation, context.CancelFunc, error) {
	if err := checkReadConcern(g.ReadConcern); err != nil {
		return op, nil, err
	}
	limited, cancel := op.limited(time.Duration(g.MaxTimeMS) * time.Millisecond)
	return limited, cancel, nil
}

// explain turns the end of a context into MongoDB's error for it. Other errors stay as they are.
func (op operation) explain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errTimeLimit
	case errors.Is(err, context.Canceled), mongoerr.Is(err, mongoerr.Interrupted):
		if cause := context.Cause(op.Context); cause != nil && mongoerr.Is(cause, mongoerr.MaxTimeMSExpired) {
			return errTimeLimit
		}
		if op.closing.Load() {
			return errAtShutdown
		}
		return mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
	}
	return err
}

// checkReadConcern takes the levels that a single node gives anyway: every read sees every acknowledged write.
func checkReadConcern(concern bson.Document) error {
	it := bson.Elements(concern)
	for len(concern) > 0 && it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "level":
			if err := checkReadLevel(v); err != nil {
				return err
			}
		case "afterClusterTime", "provenance":
			// A single node has applied all that it ever acknowledged.
		case "atClusterTime":
			return mongoerr.New(mongoerr.CommandNotSupported, "'readConcern.atClusterTime' is not supported yet")
		default:
			return mongoerr.New(mongoerr.IDLUnknownField, "BSON field 'readConcern.%s' is an unknown field.", it.Key())
		}
	}
	return nil
}

func checkReadLevel(v bson.Value) error {
	level, ok := v.StringValueOK()
	if !ok {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'readConcern.level' is the wrong type '%s', expected type 'string'",
			bson.TypeName(v.Type))
	}
	switch level {
	case "local", "available", "majority", "linearizable":
		return nil
	case "snapshot":
		return mongoerr.New(mongoerr.CommandNotSupported, "read concern level 'snapshot' is not supported yet")
	}
	return mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'readConcern.level' is not a valid value.", level)
}
