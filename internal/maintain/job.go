package maintain

import (
	"context"

	"oxbow/internal/bson"
)

// Job is one job's work. A Runner calls Step again and again until the job is done; the same Job is never run by two at a time under a valid lease, but a step
// may run twice: when its checkpoint was not stored, or when who ran it lost the lease and did not know yet. So a step done again must change nothing more.
type Job interface {
	// Step does the next small piece of work after a checkpoint, nil at the beginning. It paces itself by asking pace before it sends anything, ends
	// early when ctx ends, and returns what it did. With an error nothing is stored, and the step is tried again after a while.
	Step(ctx context.Context, checkpoint bson.Document, pace Pace) (Outcome, error)
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
	Reason string
	Count  int64
}

// Pace is what a step asks before it sends something.
type Pace interface {
	// Wait returns when documents of bytes (0: not known) may be sent, or with an error when ctx ends or the job has to stop before.
	Wait(ctx context.Context, documents int, bytes int64) error
	// Share is the share of the full pace, in (0, 1], that is given now: a step may make its batches smaller.
	Share() float64
}
