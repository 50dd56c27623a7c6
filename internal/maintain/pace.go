package maintain

import (
	"context"
	"time"
)

// pace is the Pace of a run's step: that of the job's throttle, until the run is to end.
type pace struct{ run *run }

// lendAfter is how long a step may wait for its throttle until others have its turn.
const lendAfter = time.Second

// Wait implements Pace. While it waits for long, other jobs have their turns.
func (p *pace) Wait(ctx context.Context, documents int, bytes int64) error {
	h := p.run
	if err := context.Cause(h.soft); err != nil {
		return err
	}
	if h.throttle == nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.soft, func() { cancel(context.Cause(h.soft)) })()
	waited := make(chan error, 1)
	go func() { waited <- h.throttle.Wait(ctx, documents, bytes) }()
	var err error
	select {
	case err = <-waited:
	case <-time.After(lendAfter):
		h.turn.lend()
		err = <-waited
		if again := h.turn.regain(h.soft); err == nil {
			err = again
		}
	}
	if err != nil && h.soft.Err() != nil {
		return context.Cause(h.soft)
	}
	return err
}

// Share implements Pace.
func (p *pace) Share() float64 {
	if p.run.throttle == nil {
		return 1
	}
	return p.run.throttle.Share()
}
