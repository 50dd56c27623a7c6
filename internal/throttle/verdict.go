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
	Share  float64 // of the full pace: 1 with Go, in (0, 1) with Slow, 0 with Stop; above 1 only from a probe that hurries
	Probe  string  // whose verdict it is; "" with Go
	Reason string  // with the figures that it rests on; "" with Go
}

// Probe looks at one thing. An error is a failed probe, which stops.
type Probe interface {
	Name() string
	Look(ctx context.Context) (Verdict, error)
}
