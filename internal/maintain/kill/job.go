package kill

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
	"oxbow/internal/operation"
)

// Options are what a Job needs.
type Options struct {
	Deployment operation.Deployment
	Policies   []Policy
	DryRun     bool          // nothing is ended: the history tells what would have been
	Every      time.Duration // between two looks; 0: a second
	Log        *slog.Logger  // nil: none
	Now        func() time.Time
	Note       func(Event) // is told of each event; nil: nobody is
}

// Job looks again and again at what a deployment runs, and does what policies say. It is never done.
type Job struct {
	o    Options
	seen map[string]bool // what was logged or alerted, by member, opid and policy, so that it is once
	most int             // the number of names at which those are looked for that have ended
	last time.Time       // the last look
}

var _ maintain.Job = (*Job)(nil)

const defaultEvery = time.Second

// New returns a Job.
func New(o Options) (*Job, error) {
	if len(o.Policies) == 0 {
		return nil, fmt.Errorf("no policy: a job that looks after operations has to be told which")
	}
	for i := range o.Policies {
		if err := o.Policies[i].Check(); err != nil {
			return nil, fmt.Errorf("policy %s: %w", o.Policies[i].Name, err)
		}
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Job{o: o, seen: map[string]bool{}, most: firstForget}, nil
}

// Step waits until the next look is due and takes it. It asks for no pace: what it does takes load away.
func (j *Job) Step(ctx context.Context, checkpoint bson.Document, _ maintain.Pace) (maintain.Outcome, error) {
	events, err := Events(checkpoint)
	if err != nil {
		return maintain.Outcome{}, fmt.Errorf("read the history: %w", err)
	}
	if wait := j.o.Every - j.o.Now().Sub(j.last); !j.last.IsZero() && wait > 0 {
		select {
		case <-ctx.Done():
			return maintain.Outcome{}, ctx.Err()
		case <-time.After(wait):
		}
	}
	fresh, err := j.Look(ctx)
	if err != nil {
		return maintain.Outcome{}, err
	}
	out := maintain.Outcome{Checkpoint: checkpoint, Remaining: -1, Documents: int64(len(fresh))}
	if len(fresh) > 0 || checkpoint == nil {
		out.Checkpoint, err = checkpointOf(append(events, fresh...))
	}
	return out, err
}

// Look looks once, and returns what became of what.
func (j *Job) Look(ctx context.Context) ([]Event, error) {
	j.last = j.o.Now()
	list, silent, err := operation.List(ctx, j.o.Deployment)
	if err != nil {
		return nil, fmt.Errorf("look at what runs: %w", err)
	}
	for _, s := range silent {
		j.warn("silent "+s.Member, "a member does not tell what it runs", "member", s.Member, "reason", s.Why)
	}
	found := j.concerned(ctx, list)
	j.forget(list)
	events := make([]Event, len(found))
	var ending sync.WaitGroup
	for i := range found {
		events[i] = eventOf(&found[i].op, found[i].policy, found[i].why, j.o.Now())
		if found[i].policy.Action == Kill {
			ending.Go(func() { j.end(ctx, &found[i].op, &events[i]) })
		}
	}
	ending.Wait()
	var fresh []Event
	for _, e := range events {
		// A kill that fails is tried again at each look, and told of once.
		if e.Error == "" || j.first("failed "+e.Member+" "+e.Operation+" "+e.Policy) {
			j.note(e)
			fresh = append(fresh, e)
		}
	}
	return fresh, ctx.Err()
}

// concern is an operation that a policy concerns.
type concern struct {
	op     operation.Operation
	policy *Policy
	why    string
}

// concerned picks the operations that policies concern and that were not dealt with before.
func (j *Job) concerned(ctx context.Context, list []operation.Operation) []concern {
	var found []concern
	counts := map[string]int64{}
	for i := range list {
		o := &list[i]
		if o.Killed || !j.may(o) {
			continue
		}
		if err := operation.Explain(ctx, j.o.Deployment, o); err != nil {
			j.warn("explain "+o.Namespace, "cannot tell whether an operation has an index", "namespace", o.Namespace, "error", err)
		}
		if !o.Scans() {
			continue
		}
		at := o.Member + " " + o.Namespace
		if _, known := counts[at]; !known {
			n, err := operation.Documents(ctx, j.o.Deployment, o)
			if err != nil {
				j.warn("count "+at, "cannot tell how large a collection is", "namespace", o.Namespace, "error", err)
				continue
			}
			counts[at] = n
		}
		p, why := strictest(j.o.Policies, o, counts[at])
		if p == nil {
			continue
		}
		if name := o.Member + " " + o.Number() + " " + p.Name; p.Action == Kill && !j.o.DryRun || j.first(name) {
			found = append(found, concern{*o, p, why})
		}
	}
	return found
}

func (j *Job) may(o *operation.Operation) bool {
	for i := range j.o.Policies {
		if j.o.Policies[i].may(o) {
			return true
		}
	}
	return false
}

// first reports whether it is asked for the first time under a name.
func (j *Job) first(name string) bool {
	seen := j.seen[name]
	j.seen[name] = true
	return !seen
}

// warn logs what keeps a look from seeing all, once under a name.
func (j *Job) warn(name, message string, what ...any) {
	if j.first(name) {
		j.o.Log.Warn(message, what...)
	}
}

// firstForget is how many names are kept before any is let go of.
const firstForget = 1000

// forget lets go of what was told of operations that have ended. Whenever there are twice as many names as were left by the last look at all of them, they are
// looked at: a constant cost a name. Of one that has not been told of yet nothing is kept, since it may become old enough for a policy.
func (j *Job) forget(list []operation.Operation) {
	if len(j.seen) < j.most {
		return
	}
	left := map[string]bool{}
	for i := range list {
		for p := range j.o.Policies {
			name := list[i].Member + " " + list[i].Number() + " " + j.o.Policies[p].Name
			for _, name := range [...]string{name, "failed " + name} {
				if j.seen[name] {
					left[name] = true
				}
			}
		}
	}
	j.seen, j.most = left, max(firstForget, 2*len(left))
}

// end ends an operation, unless this is a dry run, and notes what came of it.
func (j *Job) end(ctx context.Context, o *operation.Operation, e *Event) {
	if j.o.DryRun {
		e.DryRun = true
		return
	}
	began := time.Now()
	gone, err := operation.Kill(ctx, j.o.Deployment, o)
	e.Gone, e.Took = gone, time.Since(began).Milliseconds()
	switch {
	case err != nil:
		e.Error = err.Error()
	case !gone:
		e.Error = fmt.Sprintf("it still runs %s after it was killed", operation.KillPatience)
	}
}

// note tells of an event.
func (j *Job) note(e Event) {
	level, message := slog.LevelWarn, "operation without an index"
	switch {
	case e.Action == Kill.String() && e.DryRun:
		message = "operation without an index would be killed"
	case e.Action == Kill.String() && e.Gone:
		message = "operation without an index killed"
	case e.Action == Kill.String():
		level, message = slog.LevelError, "operation without an index could not be killed"
	case e.Action == Alert.String():
		level = slog.LevelError
	}
	what := []any{"policy", e.Policy, "member", e.Member, "opid", e.Operation, "namespace", e.Namespace, "shape", e.Shape, "client", e.Client, "app", e.App, "reason", e.Reason}
	if e.Error != "" {
		what = append(what, "error", e.Error)
	}
	j.o.Log.Log(context.Background(), level, message, what...)
	if j.o.Note != nil {
		j.o.Note(e)
	}
}
