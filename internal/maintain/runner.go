package maintain

import (
	"context"
	"log/slog"
	"time"

	"oxbow/internal/catalog"
)

// Runner looks after the partitions of a catalog.
type Runner struct{}

// Options are what a Runner needs.
type Options struct {
	Catalog *catalog.Catalog
	Log     *slog.Logger
	Every   time.Duration // between two passes; 0: 10 s
	MaxDue  int           // most partitions due at once without a confirmation; 0: 64 ranges
	// BackendTime returns a backend's idea of now, or an error; nil: the wall clock alone counts.
	BackendTime func(ctx context.Context, backend string) (time.Time, error)
}

// New returns a Runner.
func New(opts Options) *Runner { panic("unbuilt") }

// Run makes passes until ctx ends.
func (r *Runner) Run(ctx context.Context) error { panic("unbuilt") }

// Pass makes one pass and returns what it did.
func (r *Runner) Pass(ctx context.Context) []Event { panic("unbuilt") }

// Event is one thing that a Runner did, or why it stopped.
type Event struct {
	At         time.Time
	Collection string // namespace, "" for the whole Runner
	Partition  string // physical namespace
	Action     Action
	Reason     string
	Err        error
}

// Action is what an Event did.
type Action string

// The actions.
const (
	Made    Action = "made"
	Hid     Action = "hid"
	Dropped Action = "dropped"
	Stopped Action = "stopped"
)

// History returns the latest events, oldest first.
func (r *Runner) History() []Event { panic("unbuilt") }

// Stopped returns why retention has stopped for a collection, or "".
func (r *Runner) Stopped(ns string) string { panic("unbuilt") }

// Confirm lets a collection's retention go on once past the reason it stopped for.
func (r *Runner) Confirm(ns string) { panic("unbuilt") }
