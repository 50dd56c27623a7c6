package remote

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
)

// state is what a circuit lets through.
type state int32

// The states, by their names in backend.Circuits.
const (
	closed state = iota
	crowded
	open
	halfOpen
)

// String names a state, as metrics and the log do.
func (s state) String() string { return backend.Circuits[s] }

// When a circuit opens, and when it is tried whether it can close. An election takes up to 12 seconds in which commands wait for the new primary but none
// fails (https://www.mongodb.com/docs/manual/core/replica-set-elections/), and a server that goes down takes all that run on it with it at once: neither is
// a reason to turn commands away.
const (
	openAfter    = 5 // commands without a reply, and none with one between them,
	openSilence  = 5 * time.Second
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
)

// circuit turns commands away at once when they would fail after a wait: when a deployment has answered nothing for openSilence, though openAfter commands
// asked. Whether it answers again is tried with a probe, not with a client's command. Safe for concurrent use.
type circuit struct {
	log  *slog.Logger
	life context.Context // probes end with it

	now       atomic.Int32 // a state
	refused   atomic.Int64
	failures  atomic.Int32 // since the last reply
	lastReply atomic.Int64 // nanoseconds since start
	start     time.Time

	mu struct {
		sync.Mutex
		began  time.Time // when the first of the failures began
		since  time.Time // of the state
		reason string
	}
}

// state is the state now.
func (c *circuit) state() state { return state(c.now.Load()) }

func newCircuit(life context.Context, log *slog.Logger) *circuit {
	now := time.Now()
	c := &circuit{log: log, life: life, start: now}
	c.mu.since = now
	return c
}

// admit returns why a command may not go, or "".
func (c *circuit) admit() (reason string) {
	switch c.state() {
	case open, halfOpen:
	default:
		return ""
	}
	c.refused.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.reason
}

// replied notes that the deployment has answered.
func (c *circuit) replied(now time.Time) {
	c.lastReply.Store(int64(now.Sub(c.start)))
	if c.failures.Load() != 0 {
		c.failures.Store(0)
	}
}

// failed notes a command that began at a time and got no reply. probe reports whether another would.
func (c *circuit) failed(began time.Time, err error, probe func(context.Context) error) {
	if c.opens(began, time.Now(), err) {
		go c.probe(probe)
	}
}

// opens counts a failure, and opens the circuit if it is one too many.
func (c *circuit) opens(began, now time.Time, err error) bool {
	return c.turn(func() (to state, reason string, turns bool) {
		if c.failures.Add(1) == 1 {
			c.mu.began = began
		}
		heard := c.start.Add(time.Duration(c.lastReply.Load()))
		if c.mu.began.After(heard) {
			heard = c.mu.began
		}
		silence, n := now.Sub(heard), c.failures.Load()
		if n < openAfter || silence < openSilence || c.state() >= open {
			return 0, "", false
		}
		return open, fmt.Sprintf("no reply for %v, while %d commands failed, the last with: %v", silence.Round(time.Millisecond), n, err), true
	})
}

// probe tries until the deployment answers, and closes the circuit then.
func (c *circuit) probe(try func(context.Context) error) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.life.Done():
			return
		}
		c.now.Store(int32(halfOpen))
		ctx, cancel := context.WithTimeout(c.life, probeTimeout)
		err := try(ctx)
		cancel()
		if err == nil {
			c.answered()
			return
		}
		c.now.Store(int32(open))
	}
}

// answered closes the circuit after a probe was answered.
func (c *circuit) answered() {
	c.replied(time.Now())
	c.turn(func() (state, string, bool) { return closed, "a probe was answered", true })
}

// turnedAway notes that a command was turned away because others wait for too long.
func (c *circuit) turnedAway(err error) {
	c.refused.Add(1)
	if c.state() == closed {
		c.turn(func() (state, string, bool) { return crowded, err.Error(), c.state() == closed })
	}
}

// flows notes that a command got a connection without having to wait.
func (c *circuit) flows() {
	if c.state() == crowded {
		c.turn(func() (state, string, bool) { return closed, "nobody waits for a connection", c.state() == crowded })
	}
}

// turn puts the circuit into another state, if decide says so, which is called under the lock. The log has it afterwards: it may be slow.
func (c *circuit) turn(decide func() (to state, reason string, turns bool)) bool {
	c.mu.Lock()
	to, reason, turns := decide()
	if !turns {
		c.mu.Unlock()
		return false
	}
	now, was := time.Now(), c.state()
	lasted := now.Sub(c.mu.since)
	c.now.Store(int32(to))
	c.mu.since, c.mu.reason = now, reason
	c.mu.Unlock()
	level := slog.LevelWarn
	if to == closed {
		level = slog.LevelInfo
	}
	c.log.Log(c.life, level, "circuit "+to.String(), "reason", reason, "was", was.String(), "for", lasted.Round(time.Millisecond))
	return true
}
