package deployment

import (
	"context"
	"time"

	"oxbow/internal/backend"
)

// Member is one server of a deployment.
type Member struct {
	Host   string // host:port as its replica set names it; the backend's name for an embedded engine
	Set    string // its replica set; "": it is in none
	State  State
	Hidden bool
	Delay  time.Duration     // secondaryDelaySecs
	Tags   map[string]string // nil: none
	Votes  int
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

// Dialer opens a connection to one server, past the choice of a server that a backend makes for a command.
type Dialer interface {
	Dial(ctx context.Context, host string) (backend.Backend, error)
}
