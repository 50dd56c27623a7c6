package throttle

import "context"

// State is what a verdict says.
type State int

// The states, from the best to the worst.
const (
	Go State = iota
	Slow
	Stop
)

// String names a state as it is shown everywhere.
func (s State) String() string { return [...]string{"go", "slow", "stop"}[s] }

// Verdict is what a probe, or the throttle from all of them, says now.
type Verdict struct {
	State  State
	Share  float64 // of the full pace: 1 with Go, in (0, 1) with Slow, 0 with Stop; above 1 only where something hurries
	Probe  string  // whose verdict it is; "" with a Go that does not hurry
	Reason string  // with the figures that it rests on; "" likewise
	Holds  bool    // a Stop that lasts until the probes of what it may have upset have looked again and say go
}

// String is the verdict in one line.
func (v Verdict) String() string {
	if v.Reason == "" {
		return v.State.String()
	}
	return v.State.String() + ": " + v.Reason
}

// Probe looks at one thing. An error is a failed probe, which stops, but for an Absent.
type Probe interface {
	Name() string
	Look(ctx context.Context) (Verdict, error)
}

// Runner is a probe with work of its own beside its looks.
type Runner interface {
	Probe
	Run(ctx context.Context)
}

// Absent is the error of a probe that can see nothing here, such as the lag of a deployment without replica sets: why. It slows nothing.
type Absent string

// Error implements error.
func (a Absent) Error() string { return string(a) }

var going = Verdict{State: Go, Share: 1}
