package operation

import (
	"cmp"
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
// what it runs is an error, as something may run there, and so is one that refuses a kill; where that does not pass within KillPatience, as it does where a
// primary steps down. When ctx ends before all are gone, the error names one that still runs.
func KillTagged(ctx context.Context, d Deployment, tag string) error {
	var failing time.Time
	var last *Operation // that was seen
	for {
		left, err := killOnce(ctx, d, tag)
		last = cmp.Or(left, last)
		switch {
		case err == nil && left == nil:
			return nil
		case err == nil:
			failing = time.Time{}
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) >= KillPatience:
			return err
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("operation %s on %s was killed and still runs: %w", last.Number(), last.Member, ctx.Err())
			}
			return err
		case <-time.After(killLook):
		}
	}
}

// killOnce kills what carries a tag now, and returns one of those; nil: no member runs any.
func killOnce(ctx context.Context, d Deployment, tag string) (one *Operation, err error) {
	list, silent, err := List(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("look for what carries %s: %w", tag, err)
	}
	var failed error
	for i := range list {
		if o := &list[i]; o.Comment == tag {
			one = o
			failed = cmp.Or(failed, kill(ctx, d, o)) // the others are killed all the same
		}
	}
	if failed == nil && len(silent) > 0 {
		failed = fmt.Errorf("look for what carries %s: %s does not tell: %s", tag, silent[0].Member, silent[0].Why)
	}
	return one, failed
}
