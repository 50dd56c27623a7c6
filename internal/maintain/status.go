package maintain

import (
	"fmt"
	"math"
	"time"
)

// State is what a job does, or why it does nothing.
type State string

// The states.
const (
	Waiting State = "waiting" // for its window, its next pass, or its turn
	Running State = "running"
	Paused  State = "paused"
	Stopped State = "stopped" // until somebody resumes it
	Held    State = "held"    // by a clock that can't be trusted or a stop file
	Failed  State = "failed"  // until somebody resumes it
	Done    State = "done"
)

// Status is a job as people see it.
type Status struct {
	ID        string    `bson:"id" json:"id"`
	Kind      string    `bson:"kind" json:"kind"`
	Namespace string    `bson:"namespace,omitempty" json:"namespace,omitempty"`
	State     State     `bson:"state" json:"state"`
	Reason    string    `bson:"reason,omitempty" json:"reason,omitempty"` // why it does not run, or not at its full pace
	Owner     string    `bson:"owner,omitempty" json:"owner,omitempty"`   // host and process that runs it
	Next      time.Time `bson:"next,omitempty" json:"next,omitzero"`      // when it will run again; zero: not known, or it runs
	Begun     time.Time `bson:"begun,omitempty" json:"begun,omitzero"`    // of this pass
	Steps     int64     `bson:"steps" json:"steps"`                       // of this pass, as what follows
	Documents int64     `bson:"documents" json:"documents"`
	Bytes     int64     `bson:"bytes" json:"bytes"`
	Skipped   []Skip    `bson:"skipped,omitempty" json:"skipped,omitempty"`
	Remaining int64     `bson:"remaining" json:"remaining"`         // documents, about; -1: not known
	Rate      float64   `bson:"rate" json:"rate"`                   // documents a second, lately
	ETA       float64   `bson:"eta,omitempty" json:"eta,omitempty"` // seconds of running to go at this rate; 0: not known
	Share     float64   `bson:"share" json:"share"`                 // of the full pace
	Failures  int       `bson:"failures,omitempty" json:"failures,omitempty"`
	Windows   []string  `bson:"windows,omitempty" json:"windows,omitempty"`
	Priority  int       `bson:"priority" json:"priority"`
	Limits    Limits    `bson:"limits" json:"limits"`
	Last      *Entry    `bson:"last,omitempty" json:"last,omitempty"`
	Alert     string    `bson:"alert,omitempty" json:"alert,omitempty"` // what somebody should look at
	Undo      []string  `bson:"undo,omitempty" json:"undo,omitempty"`   // where what is taken away may still be found
}

// States are all states.
var States = []State{Waiting, Running, Paused, Stopped, Held, Failed, Done}

// Orders are what operators want of a job. They are fields of its document, and obeyed within a second.
type Orders struct {
	Paused    bool     `bson:"paused"`
	Stopped   bool     `bson:"stopped"`
	Now       bool     `bson:"now"`     // with Stopped: what is in flight is killed
	Resumed   int64    `bson:"resumed"` // counts the orders to resume
	Documents *float64 `bson:"documents,omitempty"`
	Bytes     *float64 `bson:"bytes,omitempty"`
	Priority  *int     `bson:"priority,omitempty"`
}

// limits are those of the orders, or of the specification where the orders have none.
func (o *Orders) limits(l Limits) Limits {
	if isLimit(o.Documents) {
		l.Documents = *o.Documents
	}
	if isLimit(o.Bytes) {
		l.Bytes = *o.Bytes
	}
	return l
}

// isLimit reports whether an order of a limit is there, and is one: neither below 0 nor infinite nor NaN.
func isLimit(n *float64) bool { return n != nil && *n >= 0 && !math.IsInf(*n, 1) }

// finite is a figure that JSON can tell, 0 in the place of one that it can't.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// Readable reports whether the job's document is one.
func (s *Status) Readable() bool { return s.Kind != "" }

// silent is how many lengths of a lease an owner may not have renewed it before people are told.
const silent = 3

// status is a stored job as people see it at now.
func (r *record) status(now time.Time) Status {
	if r.fault != nil {
		return Status{ID: r.ID, State: Failed, Reason: r.fault.Error(), Remaining: -1, Priority: 1}
	}
	pass, failures := r.Pass, r.Failures
	if r.Of != r.Spec.print() { // what is stored was done by another specification
		pass, failures = passed{Remaining: -1}, 0
	}
	s := Status{
		ID: r.ID, Kind: r.Spec.Kind, Namespace: r.Spec.Namespace, State: r.State, Reason: r.Reason, Next: r.Next,
		Begun: pass.Begun, Steps: pass.Steps, Documents: pass.Documents, Bytes: pass.Bytes, Skipped: pass.Skipped, Remaining: pass.Remaining,
		Rate: finite(r.Pace.Rate), Share: finite(r.Pace.Share), Failures: failures, Windows: r.Spec.Windows, Priority: max(1, r.Spec.Priority),
		Last: r.Last,
	}
	limits := r.Orders.limits(r.Spec.Limits)
	s.Limits = Limits{Documents: finite(limits.Documents), Bytes: finite(limits.Bytes)}
	if r.Orders.Priority != nil {
		s.Priority = *r.Orders.Priority
	}
	if r.Lease.Owner != "" && r.State == Running {
		s.Owner = r.Lease.Host
		if age := now.Sub(r.Lease.Renewed); age > silent*time.Duration(r.Lease.Length)*time.Millisecond {
			s.Reason = fmt.Sprintf("%s has not renewed its lease for %s: it is cut off, or away", r.Lease.Host, age.Round(time.Second))
		}
	} else {
		s.Rate, s.Share = 0, 0
		switch {
		case r.Ended == Done:
		case r.Orders.Stopped:
			s.State, s.Reason, s.Next = Stopped, "stopped by an order", time.Time{}
		case r.Orders.Paused:
			s.State, s.Reason, s.Next = Paused, "paused by an order", time.Time{}
		}
	}
	if s.Remaining > 0 && s.Rate > 0 {
		s.ETA = float64(s.Remaining) / s.Rate
	}
	return s
}
