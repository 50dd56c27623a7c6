package purge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// Strategy is a way to take documents away.
type Strategy string

// The strategies.
const (
	Drop    Strategy = "drop"    // whole partitions or collections whose time is over
	Slices  Strategy = "slices"  // one worker, a slice of time after the other
	Ranges  Strategy = "ranges"  // several workers over ranges of a key
	IDs     Strategy = "ids"     // export _ids, then delete by them
	Nightly Strategy = "nightly" // ranges in one window a day; unpaced, one delete of everything
	TTL     Strategy = "ttl"     // watch the server's own expiry
)

// Strategies are all of them.
func Strategies() []Strategy { return []Strategy{Drop, Slices, Ranges, IDs, Nightly, TTL} }

// ParseStrategy reads a Strategy's name.
func ParseStrategy(name string) (Strategy, error) {
	if s := Strategy(name); slices.Contains(Strategies(), s) {
		return s, nil
	}
	var names []string
	for _, s := range Strategies() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("there is no strategy %q; there are %s", name, strings.Join(names, ", "))
}

// Target is one physical collection to take documents from, or a logical one of a server that splits it itself.
type Target struct {
	Backend   backend.Backend
	Name      string // of the backend, for checkpoints; "" where there is one only
	Namespace backend.Namespace
	Reader    backend.Backend // where _ids are exported: a secondary; nil: Backend
}

// name tells targets apart in a checkpoint.
func (t *Target) name() string { return strings.TrimPrefix(t.Name+"/"+t.Namespace.String(), "/") }

// Archive takes what is about to go. When Append returns nil the documents are there and synced.
type Archive interface {
	Append(ns backend.Namespace, documents []bson.Document) error
}

// Options are what New needs.
type Options struct {
	Strategy  Strategy
	Predicate Predicate

	// Targets are asked for at the beginning of a pass; not used by Drop.
	Targets func(ctx context.Context) ([]Target, error)
	// Parts are what Drop drops.
	Parts Parts

	Archive   Archive           // nil: none
	ArchiveAs backend.Namespace // under which documents are archived; zero: the target's own

	Workers  int           // of Ranges and Nightly; 0: 4
	Batch    int           // documents a delete at most; 0: 1,000
	Slice    time.Duration // of Slices; 0: 1 m
	Follow   bool          // Slices: wait for the next slice, and never be done
	Unpaced  bool          // Nightly: one delete of everything; Slices: a slice is one delete, whatever its size
	Export   int           // IDs: _ids held in memory at most; 0: 100,000
	MaxRatio float64       // keys or documents examined for one that goes, at most; 0: 10
	Every    time.Duration // TTL: between two looks; 0: 1 m

	Comment string           // of the commands that are sent, by which they are found and killed; "": "oxbow:purge"
	Clock   func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: discard
}

// The defaults of Options.
const (
	defaultWorkers = 4
	defaultBatch   = 1000
	maxBatch       = 10_000
	maxWorkers     = 1000
	maxExport      = 10_000_000
	defaultSlice   = time.Minute
	defaultExport  = 100_000
	DefaultRatio   = 10.0
	defaultEvery   = time.Minute
)

// At is Options.Targets for one collection.
func At(b backend.Backend, ns backend.Namespace) func(context.Context) ([]Target, error) {
	return func(context.Context) ([]Target, error) { return []Target{{Backend: b, Namespace: ns}}, nil }
}

// Refusal is an error that trying again does not mend: somebody has to decide.
type Refusal struct {
	Reason string
	Index  string // the command that makes the index which is wanted; "": it is not about one
}

func (r *Refusal) Error() string {
	if r.Index == "" {
		return r.Reason
	}
	return r.Reason + "; make the index with " + r.Index
}

// New returns the job of a strategy. A Refusal is a permanent error of it.
func New(o Options) (maintain.Job, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return decided{o.job()}, nil
}

// decided is a job whose refusals are permanent.
type decided struct{ maintain.Job }

// Step implements maintain.Job.
func (d decided) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	out, err := d.Job.Step(ctx, checkpoint, pace)
	var r *Refusal
	if errors.As(err, &r) {
		err = maintain.Permanent(err)
	}
	return out, err
}

// on is a target's collection, with the job's comment.
func (o *Options) on(t Target) *collection { return &collection{t, o.Comment} }

func (o Options) job() maintain.Job {
	switch o.Strategy {
	case Drop:
		return &dropping{options: o}
	case Slices:
		return &slicing{options: o}
	case Ranges:
		return &ranging{options: o}
	case Nightly:
		if o.Unpaced {
			return &clearing{options: o}
		}
		return &ranging{options: o}
	case IDs:
		return &exporting{options: o}
	default:
		return &watching{options: o}
	}
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	if _, err := ParseStrategy(string(o.Strategy)); err != nil {
		return err
	}
	switch o.Strategy {
	case Drop:
		if o.Predicate.Age == 0 && o.Predicate.Before.IsZero() {
			return errors.New("drop needs a time before which documents go")
		}
		if err := o.Predicate.checkTimes(); err != nil {
			return err
		}
	case TTL:
	default:
		if err := o.Predicate.Check(); err != nil {
			return err
		}
	}
	switch {
	case o.Strategy == Drop && o.Parts == nil:
		return errors.New("drop needs partitions, or collections that are named by their time")
	case o.Strategy == Drop && len(o.Predicate.Where) > emptyLength:
		return errors.New("drop takes whole collections, so a filter can't choose among their documents")
	case o.Strategy != Drop && o.Targets == nil:
		return fmt.Errorf("%s needs a collection", o.Strategy)
	case o.Strategy == Slices && o.Predicate.Field == "":
		return errors.New("slices needs a field that tells time")
	case o.Archive != nil && o.Unpaced:
		return errors.New("what one delete of everything takes can't be archived before")
	case o.Archive != nil && o.Strategy == TTL:
		return errors.New("what the server's own expiry takes can't be archived before")
	}
	if err := o.inBounds(); err != nil {
		return err
	}
	setDefault(&o.Workers, defaultWorkers)
	setDefault(&o.Batch, defaultBatch)
	setDefault(&o.Slice, defaultSlice)
	setDefault(&o.Export, defaultExport)
	setDefault(&o.MaxRatio, DefaultRatio)
	setDefault(&o.Every, defaultEvery)
	if o.Comment == "" {
		o.Comment = defaultComment
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// inBounds refuses figures that are none, or that would take all memory.
func (o *Options) inBounds() error {
	switch {
	case o.Workers < 0 || o.Workers > maxWorkers:
		return fmt.Errorf("workers are 1 to %d, not %d", maxWorkers, o.Workers)
	case o.Batch < 0 || o.Batch > maxBatch:
		return fmt.Errorf("a batch has 1 to %d documents, not %d", maxBatch, o.Batch)
	case o.Export < 0 || o.Export > maxExport:
		return fmt.Errorf("an export holds 1 to %d _ids, not %d", maxExport, o.Export)
	case o.Slice < 0:
		return fmt.Errorf("a slice is a time above 0, not %s", o.Slice)
	case !(o.MaxRatio >= 0) || math.IsInf(o.MaxRatio, 1): // NaN is neither
		return fmt.Errorf("the greatest ratio is a number above 0, not %g", o.MaxRatio)
	}
	return nil
}

// setDefault replaces what is not above zero.
func setDefault[T int | float64 | time.Duration](at *T, value T) {
	if *at <= 0 {
		*at = value
	}
}
