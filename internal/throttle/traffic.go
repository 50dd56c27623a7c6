package throttle

import (
	"sync"
	"time"
)

// traffic is what paces let through, so that probes know when nothing of it is under way. Safe for concurrent use.
type traffic struct {
	mu      sync.Mutex
	sent    time.Time // when the last step was let through
	waiting int       // steps that wait
}

// A deployment is taken for idle when no step was let through for a while; a short one where steps wait, so that those before are over.
const (
	idleAfter   = 2 * time.Second
	forgetAfter = 30 * time.Second
)

func (t *traffic) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting++
}

// leave ends a wait. With sends the step is under way now.
func (t *traffic) leave(sends bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	if sends {
		t.sent = time.Now()
	}
}

// idle reports whether no job's work has been under way for some time.
func (t *traffic) idle(now time.Time, length time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	quiet := now.Sub(t.sent) - length
	return t.sent.IsZero() || quiet > forgetAfter || t.waiting > 0 && quiet > idleAfter
}

// wanted reports whether any job has asked for its pace lately.
func (t *traffic) wanted(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting > 0 || !t.sent.IsZero() && now.Sub(t.sent) < forgetAfter
}
