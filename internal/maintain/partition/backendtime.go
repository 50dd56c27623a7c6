package partition

import (
	"context"
	"fmt"
	"time"

	"oxbow/internal/backend"
)

// HelloTime returns a function for Options.BackendTime that asks a backend's server for its time. An embedded backend has the clock of this machine.
func HelloTime(backends map[string]backend.Backend) func(ctx context.Context, name string) (time.Time, error) {
	return func(ctx context.Context, name string) (time.Time, error) {
		b, ok := backends[name]
		if !ok {
			return time.Time{}, fmt.Errorf("backend %s is not open", name)
		}
		if b.Abilities().Embedded {
			return time.Now(), nil
		}
		return backend.ServerTime(ctx, b)
	}
}
