package deployment

import (
	"strings"
	"time"
)

// Member is one server of a deployment.
type Member struct {
	Host   string // host:port as its replica set names it; the backend's name for an embedded engine
	Set    string // its replica set; "": it is in none
	State  State
	Why    string // why it could not be asked itself, or what it does that is Other; "": it answers
	Hidden bool
	Delay  time.Duration     // secondaryDelaySecs
	Tags   map[string]string // nil: none
	Votes  int

	// Applied is the server's own time of the last write that it has; the zero time: not known, or in no replica set.
	Applied time.Time
}

// HoldsData reports whether a member has the deployment's data.
func (m *Member) HoldsData() bool { return m.State != Arbiter && m.State != Router }

// Behind is how long a member lags behind a time of its primary, less what it is meant to. Not below 0; 0 where it is not known.
func (m *Member) Behind(primary time.Time) time.Duration {
	if m.Applied.IsZero() || primary.IsZero() {
		return 0
	}
	return max(0, primary.Sub(m.Applied)-m.Delay)
}

// State is what a member does now.
type State int

// The states. Anything that is neither primary, secondary nor arbiter (starting, recovering, rolling back) is Other.
const (
	Unreachable State = iota
	Primary           // also a server in no replica set, and an embedded engine
	Secondary
	Arbiter
	Router
	Other
)

// String names a state as it is shown everywhere.
func (s State) String() string {
	return [...]string{"unreachable", "primary", "secondary", "arbiter", "router", "other"}[s]
}

// stateNames are the states of replSetGetStatus that are not Other
// (https://www.mongodb.com/docs/manual/reference/replica-states/).
var stateNames = map[string]State{
	"PRIMARY": Primary, "SECONDARY": Secondary, "ARBITER": Arbiter, "(not reachable/healthy)": Unreachable, "UNKNOWN": Unreachable, "DOWN": Unreachable,
}

// setState takes a member's state from its name.
func (m *Member) setState(name string) {
	state, known := stateNames[name]
	if !known {
		state, m.Why = Other, "it is "+strings.ToLower(name)
	}
	m.State = state
}
