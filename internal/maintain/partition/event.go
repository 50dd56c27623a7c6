package partition

import (
	"slices"
	"time"
)

// Event is one thing that a Runner did or tried, or why it stopped.
type Event struct {
	At         time.Time
	Collection string // namespace, "" for the whole Runner
	Partition  string // physical namespace, "" where it is about a range
	Action     Action
	Reason     string
	Took       time.Duration // of work, waiting for other changes of the collection included
	Err        error         // why it failed, or nil
}

// Action is what an Event did.
type Action string

// The actions.
const (
	Made    Action = "made"
	Hidden  Action = "hidden"
	Dropped Action = "dropped"
	Stopped Action = "stopped"
	Failed  Action = "failed"
)

// History returns the latest events, oldest first.
func (r *Runner) History() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.history)
}
