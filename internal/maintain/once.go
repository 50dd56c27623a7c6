package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oxbow/internal/mongoerr"
)

// ErrTaken says that another process runs a job.
var ErrTaken = errors.New("the job is run by another process")

// Once runs one job in the foreground: it stores the specification, begins a pass or goes on with one that was cut off, in its windows and as orders have it, and
// returns once the pass is over or the job has ended. When ctx ends it lets the step end that is under way, for Options.Grace at most; then the job goes on when it is
// run again. watch, which may be nil, is told about every Options.Poll how it stands. The error is ErrTaken where another process runs it; how the job itself ended is in
// the Status.
func (r *Runner) Once(ctx context.Context, spec Spec, watch func(Status)) (Status, error) {
	limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
	defer cancel()
	if err := r.opts.Store.Put(limited, spec); err != nil {
		return Status{}, err
	}
	r.mu.Lock()
	r.mu.specs[spec.ID], r.mu.stored[spec.ID] = spec, true
	r.mu.Unlock()
	if err := r.reopen(limited, &spec); err != nil {
		return Status{}, err
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(watching, spec.ID, watch)
	}()
	err := r.untilOver(ctx, &spec)
	stop()
	<-watched
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Lease)
	defer cancelLast()
	wall, _ := r.opts.Clock()
	status, readErr := r.opts.Store.Get(last, spec.ID, wall)
	return status, errors.Join(err, readErr)
}

// reopen lets a job begin that has ended or was stopped: whoever runs it by hand wants that.
func (r *Runner) reopen(ctx context.Context, spec *Spec) error {
	rec, err := r.opts.Store.record(ctx, spec.ID)
	if err != nil {
		return err
	}
	if rec.Orders.Stopped || rec.Ended == Failed || rec.Ended == Stopped || rec.State == Held {
		if err := r.opts.Store.Order(ctx, spec.ID, Order{Resume: true}); err != nil {
			return err
		}
	}
	if rec.Lease.Owner != "" {
		return nil
	}
	if err := r.opts.Store.reopen(ctx, rec); err != nil && !errors.Is(err, errLost) {
		return fmt.Errorf("begin job %s: %w", spec.ID, err)
	}
	return nil
}

// untilOver runs a job until a pass of it is over, it has ended, or ctx ends.
func (r *Runner) untilOver(ctx context.Context, spec *Spec) error {
	var other lease
	begun := false
	for {
		rec, err := r.read(ctx, spec.ID)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case begun && (rec.Over || rec.Ended != "" || rec.Orders.Stopped) && rec.Lease.Owner != r.me.name:
			return nil
		case rec.Lease.Owner != "" && rec.Lease.Owner != r.me.name && rec.Lease.Owner == other.Owner && rec.Lease.Beat != other.Beat:
			return fmt.Errorf("%w: %s", ErrTaken, rec.Lease.Host)
		}
		other = rec.Lease
		wait := r.opts.Poll
		if v := r.consider(ctx, spec, rec); v.due {
			begun = true
			if err := r.work(ctx, spec, rec); err != nil {
				r.warnings.tell(spec.ID, "a job could not be run", err)
			} else {
				continue
			}
		} else if !v.next.IsZero() {
			wall, _ := r.opts.Clock()
			wait = max(0, min(wait, v.next.Sub(wall)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// read reads a job. Where that fails for a reason that passes by itself, such as a primary that steps down, it reads again, for mostDelay at most: what the job does
// goes on meanwhile or comes again.
func (r *Runner) read(ctx context.Context, id string) (*record, error) {
	_, began := r.opts.Clock()
	for {
		rec, err := r.opts.Store.record(ctx, id)
		_, now := r.opts.Clock()
		if err == nil || ctx.Err() != nil || !passes(err) || now-began > mostDelay {
			return rec, err
		}
		r.warnings.tell(id, "a job can't be read now", err)
		select {
		case <-ctx.Done():
		case <-time.After(r.opts.Poll):
		}
	}
}

// passes reports whether a failure to read a job may pass by itself: the server was not reached, or said that.
func passes(err error) bool {
	if errors.Is(err, ErrNoJob) || errors.Is(err, errNonsense) {
		return false
	}
	var answered *mongoerr.Error
	return !errors.As(err, &answered) || answered.Code.Retryable()
}

// watch tells how a job stands until ctx ends.
func (r *Runner) watch(ctx context.Context, id string, tell func(Status)) {
	for tell != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.opts.Poll):
		}
		limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
		wall, _ := r.opts.Clock()
		if s, err := r.opts.Store.Get(limited, id, wall); err == nil {
			tell(s)
		}
		cancel()
	}
}
