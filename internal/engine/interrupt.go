package engine

import (
	"context"
	"errors"

	"oxbow/internal/mongoerr"
)

// interrupted returns the error of a context that has ended: its own where that is a client's error, as at shutdown.
func interrupted(ctx context.Context) error {
	err := ctx.Err()
	var own *mongoerr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.DeadlineExceeded):
		return mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
	}
	return mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
}
