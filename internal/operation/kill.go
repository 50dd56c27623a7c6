package operation

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
)

// How long Kill looks whether what it killed is gone, and how often.
const (
	KillPatience = 5 * time.Second
	killLook     = 50 * time.Millisecond
)

// Kill kills an operation on the member where it runs, and returns when it is gone, or false when it is not after KillPatience: a killed operation ends
// at the next point where it looks, which a long sort or a commit may put off.
func Kill(ctx context.Context, d Deployment, o *Operation) (gone bool, err error) {
	if o.Internal != "" {
		return false, fmt.Errorf("operation %s on %s is not killed: it is %s", o.Number(), o.Member, o.Internal)
	}
	if err := kill(ctx, d, o); err != nil {
		return false, err
	}
	until := time.Now().Add(KillPatience)
	for {
		runs, err := stillRuns(ctx, d, o)
		if err != nil || !runs {
			return !runs, err
		}
		if !time.Now().Before(until) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(killLook):
		}
	}
}

// kill sends the kill, and does not wait.
func kill(ctx context.Context, d Deployment, o *Operation) error {
	b, err := d.On(ctx, o.Member)
	if err != nil {
		return err
	}
	_, err = backend.Ask(ctx, b, backend.Command("admin", func(dst []byte) []byte {
		return bsoncore.AppendValueElement(bsoncore.AppendInt32Element(dst, "killOp", 1), "op", o.ID)
	}))
	if err != nil {
		return fmt.Errorf("kill operation %s on %s: %w", o.Number(), o.Member, err)
	}
	return nil
}

func stillRuns(ctx context.Context, d Deployment, o *Operation) (bool, error) {
	list, err := on(ctx, d, o.Member)
	if err != nil {
		return true, fmt.Errorf("look whether operation %s on %s is gone: %w", o.Number(), o.Member, err)
	}
	for i := range list {
		if list[i].same(o) {
			return true, nil
		}
	}
	return false, nil
}

// KillTagged kills all operations whose comment is tag, on every member, Oxbow's own jobs' among them, and returns when none is left. A member that does not tell
// what it runs is an error: something may run there.
func KillTagged(ctx context.Context, d Deployment, tag string) error {
	for {
		list, silent, err := List(ctx, d)
		if err != nil {
			return fmt.Errorf("look for what carries %s: %w", tag, err)
		}
		left := 0
		for i := range list {
			if o := &list[i]; o.Comment == tag {
				left++
				if err := kill(ctx, d, o); err != nil {
					return err
				}
			}
		}
		switch {
		case left > 0:
		case len(silent) > 0:
			return fmt.Errorf("look for what carries %s: %s does not tell: %s", tag, silent[0].Member, silent[0].Why)
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(killLook):
		}
	}
}
