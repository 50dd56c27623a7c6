package cursor

import "sync"

// Times are the operation times that one session has seen, two for each deployment that it has used: so they are bounded by the configuration, and
// forgotten with the session. A time is a BSON timestamp as one number, its seconds in the upper half. Safe for concurrent use.
type Times struct {
	mu struct {
		sync.Mutex
		of []deploymentTimes
	}
}

type deploymentTimes struct {
	deployment  string
	wrote, seen uint64
}

// Wrote is the operation time of the session's last write on a deployment; 0: none is known.
func (t *Times) Wrote(deployment string) uint64 { return t.get(deployment).wrote }

// Seen is the latest operation time that a deployment has answered the session with; 0: none is known.
func (t *Times) Seen(deployment string) uint64 { return t.get(deployment).seen }

func (t *Times) get(deployment string) deploymentTimes {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.mu.of {
		if t.mu.of[i].deployment == deployment {
			return t.mu.of[i]
		}
	}
	return deploymentTimes{}
}

// Advance notes the operation time of a deployment's reply, to a write or to another command; what is older changes nothing.
func (t *Times) Advance(deployment string, at uint64, wrote bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := 0
	for i < len(t.mu.of) && t.mu.of[i].deployment != deployment {
		i++
	}
	if i == len(t.mu.of) {
		t.mu.of = append(t.mu.of, deploymentTimes{deployment: deployment})
	}
	one := &t.mu.of[i]
	one.seen = max(one.seen, at)
	if wrote {
		one.wrote = max(one.wrote, at)
	}
}
