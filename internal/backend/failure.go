package backend

import (
	"context"
	"errors"

	"oxbow/internal/mongoerr"
)

// NoReply turns a backend's failure to answer into what a client gets: HostUnreachable where the command was certainly not run, else NetworkTimeout, after both of which
// drivers retry what may be retried; what ended the context, where that is why.
func NoReply(ctx context.Context, name string, err error) *mongoerr.Error {
	var known *mongoerr.Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	code := mongoerr.HostUnreachable
	if !errors.Is(err, ErrUnavailable) {
		code = mongoerr.NetworkTimeout
	}
	return mongoerr.New(code, "backend %s: %s", name, err)
}

// Ended is the error of a command whose context has ended: the cause where it is MongoDB's, else by the kind of end.
func Ended(ctx context.Context) *mongoerr.Error {
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
