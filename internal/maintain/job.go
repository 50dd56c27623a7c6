package maintain

import (
	"context"
	"errors"

	"oxbow/internal/bson"
)

// Job is one job's work. A Runner calls Step again and again until the job is done; the same Job is never run by two at a time under a valid lease, but a step
// may run twice: when its checkpoint was not stored, or when who ran it lost the lease and did not know yet. So a step done again must change nothing more.
//
// A Job lives for a pass, from no checkpoint to Done, or for what is left of one. What it sends carries its Spec's Tag as comment, so that it can be found
// and killed where it runs.
type Job interface {
	// Step does the next small piece of work after a checkpoint, nil at the beginning. It paces itself by asking pace before it sends anything, ends
	// early when ctx ends, and returns what it did. With an error nothing is stored, and the step is tried again after a while; an error that Permanent
	// gave ends the job until somebody resumes it. When pace says that the job is to stop (ErrHalted) the step may return what it did until then,
	// with a checkpoint and no error.
	Step(ctx context.Context, checkpoint bson.Document, pace Pace) (Outcome, error)
}

// Closer is a Job that holds something: it is closed at the end of its pass, or of what it did of it.
type Closer interface {
	Close() error
}

// Outcome is what a step did.
type Outcome struct {
	Checkpoint bson.Document // where the next step goes on; the Runner owns it
	Done       bool          // nothing is left
	Documents  int64         // taken away or written by this step
	Bytes      int64         // of those documents, 0 where it is not known
	Remaining  int64         // documents that are still to be done, about; -1: not known
	Skipped    []Skip        // what this step left where it was
}

// Skip is documents that a step left where they were, and why.
type Skip struct {
	Reason string `bson:"reason" json:"reason"`
	Count  int64  `bson:"count" json:"count"`
}

// Pace is what a step asks before it sends something.
type Pace interface {
	// Wait returns when documents of bytes (0: not known) may be sent, or with an error when ctx ends or the job has to stop before.
	Wait(ctx context.Context, documents int, bytes int64) error
	// Share is the share of the full pace, in (0, 1], that is given now: a step may make its batches smaller.
	Share() float64
}

// Throttle is a Pace of one job that has limits, which can change while it waits, and that can say why it is not at its full pace.
type Throttle interface {
	Pace
	// Limit sets the limits of the full pace.
	Limit(Limits)
	// Reason says why Share is below 1, or why Wait has to wait for more than its limits; "" where nothing slows.
	Reason() string
}

// Limits bound a job's pace. 0: no limit.
type Limits struct {
	Documents float64 `bson:"documents,omitempty" json:"documents,omitempty"` // a second
	Bytes     float64 `bson:"bytes,omitempty" json:"bytes,omitempty"`         // a second, of the oplog or, where there is none, of documents
}

// ErrHalted marks the error of a Pace when the job is to stop after the step that it is in.
var ErrHalted = errors.New("the job is to stop")

// halted is ErrHalted with the reason.
type halted struct{ reason string }

func (h halted) Error() string      { return ErrHalted.Error() + ": " + h.reason }
func (halted) Is(target error) bool { return target == ErrHalted }

// Permanent marks an error that trying again does not mend. One that has a method Permanent() bool marks itself.
func Permanent(err error) error { return permanent{err} }

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }
func (permanent) Permanent() bool { return true }

func isPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
