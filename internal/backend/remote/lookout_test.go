package remote

import (
	"context"
	"errors"
	"testing"

	"oxbow/internal/backend"
)

// TestEndOfContext: a command that waits for its answer ends with its context, the first one, those after others, and one that comes when nothing was
// under way for so long that the lookout sleeps; a later command finds a connection that works.
func TestEndOfContext(t *testing.T) {
	v := newValve(t, serve(t, asTheyCame))
	b := connect(t, "mongodb://"+v.Addr().String()+"/")
	run := func(ctx context.Context) error {
		_, err := b.Run(ctx, &backend.Request{Body: pingCommand})
		return err
	}
	cancelled := func(when string) {
		t.Helper()
		if err := run(t.Context()); err != nil { // so that there is a connection
			t.Fatal(err)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- run(ctx) }()
		await(t, "the command is under way", func() bool { return b.Figures().InUse == 1 })
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s: the command ended with %v", when, err)
		}
	}
	cancelled("the first command")
	cancelled("a command after others")
	await(t, "the lookout sleeps", b.dialer.lookout.asleep.Load)
	cancelled("a command that finds the lookout asleep")
	if err := run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndedBeforehand: a command whose context has been cancelled is not sent.
func TestEndedBeforehand(t *testing.T) {
	b := connect(t, serve(t, asTheyCame))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Run(ctx, &backend.Request{Body: pingCommand})
	if !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
