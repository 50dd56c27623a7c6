package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bench/ways"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/mongoerr"
	"oxbow/internal/throttle"
)

// Where the pace of paced ways begins to slow, and where it stops, as multiples of the foreground's p99 without them: so that all in all it stays within
// 1.25.
const (
	paceSlow = 1.1
	paceStop = 1.4
)

// allWays are the ways that bench purge knows: the strategies of oxbow purge, those of the old scripts as fast as they go, and a TTL index.
func allWays() []ways.Way {
	paced := fmt.Sprintf("; slows when the foreground's p99 is %.1f times that of idle, stops at %.1f", paceSlow, paceStop)
	job := func(name, about string, o purge.Options, pace bool) ways.Way {
		return ways.Way{Name: name, About: about, Split: o.Strategy == purge.Drop, Run: func(ctx context.Context, t *ways.Target) error {
			return runWay(ctx, t, o, pace)
		}}
	}
	return []ways.Way{
		job("drop", "drops the days that are over, one at a time", purge.Options{Strategy: purge.Drop}, false),
		job("slices", "one worker, a delete for each minute's worth of documents, as fast as it goes", purge.Options{Strategy: purge.Slices, Unpaced: true}, false),
		job("slices-paced", "one worker, slice after slice in batches"+paced, purge.Options{Strategy: purge.Slices}, true),
		job("ranges", "four workers over ranges of time in batches"+paced, purge.Options{Strategy: purge.Ranges}, true),
		job("ids", "exports _ids and deletes by them"+paced, purge.Options{Strategy: purge.IDs}, true),
		job("nightly", "one delete of everything, as fast as it goes", purge.Options{Strategy: purge.Nightly, Unpaced: true}, false),
		ways.TTL(),
	}
}

// runWay runs a strategy on a target to its end.
func runWay(ctx context.Context, t *ways.Target, o purge.Options, paced bool) (err error) {
	b, err := remote.OpenNamed("", t.URI, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	namespace := backend.Namespace{Database: t.Database, Collection: t.Collection}
	o.Predicate = purge.Predicate{Field: ways.TimeField, Before: t.Data.Cutoff}
	o.Slice = t.Slice()
	o.Targets = purge.At(b, namespace)
	if o.Strategy == purge.Drop {
		if o.Parts, err = partsOf(ctx, t, b, namespace); err != nil {
			return err
		}
	}
	job, err := purge.New(o)
	if err != nil {
		return err
	}
	if held, ok := job.(maintain.Closer); ok {
		defer func() { err = errors.Join(err, held.Close()) }()
	}
	var pace maintain.Pace = noPace{}
	if paced {
		d := deployment.Of("", b)
		defer d.Close()
		th, err := paceFor(t, d)
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		defer stop()
		go th.Run(running)
		pace = th.Pace(maintain.Limits{})
	}
	return runToEnd(ctx, job, pace)
}

// partsOf are the days that drop takes.
func partsOf(ctx context.Context, t *ways.Target, b backend.Backend, ns backend.Namespace) (purge.Parts, error) {
	if t.Split == ways.Daily {
		return purge.NewNamedParts(b, ns.String()+"{yymmdd}", time.UTC)
	}
	parts, err := purge.GatewayParts(ctx, b, ns)
	if err == nil && parts == nil {
		err = fmt.Errorf("%s has no partitions", ns)
	}
	return parts, err
}

// paceFor is a throttle that looks at the foreground, and at all else that a throttle does.
func paceFor(t *ways.Target, d *deployment.Deployment) (*throttle.Throttle, error) {
	times := func(x float64) time.Duration {
		return time.Duration(x * float64(t.IdleP99)).Round(10 * time.Microsecond)
	}
	settings, err := throttle.Parse(fmt.Sprintf("latency<%s..%s canary=off", times(paceSlow), times(paceStop)))
	if err != nil {
		return nil, err
	}
	return throttle.Of(throttle.On{Deployment: d, Settings: settings, Foreground: foregroundSource{t}}), nil
}

// foregroundSource is the foreground as a throttle's source.
type foregroundSource struct{ t *ways.Target }

func (s foregroundSource) Quantile(now time.Time, last time.Duration, share float64) (time.Duration, int) {
	return s.t.Quantile(now, last, share)
}

// runToEnd takes a job's steps. When ctx ends, what has been sent is killed where it runs.
func runToEnd(ctx context.Context, job maintain.Job, pace maintain.Pace) error {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(mongoerr.New(mongoerr.Interrupted, "the measurement of this way is over")) })()
	var checkpoint bson.Document
	for {
		out, err := job.Step(running, checkpoint, pace)
		var refused *purge.Refusal
		switch {
		case errors.As(err, &refused):
			return &ways.Refusal{Reason: refused.Error()}
		case err != nil:
			return err
		case out.Done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		checkpoint = out.Checkpoint
	}
}

// noPace lets everything through.
type noPace struct{}

func (noPace) Wait(ctx context.Context, _ int, _ int64) error { return ctx.Err() }
func (noPace) Share() float64                                 { return 1 }
