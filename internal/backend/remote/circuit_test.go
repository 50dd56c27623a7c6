package remote

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// circuitIn is a circuit that ends with the test, and its log.
func circuitIn(t *testing.T) (*circuit, *syncBuffer) {
	var log syncBuffer
	return newCircuit(t.Context(), slog.New(slog.NewTextHandler(&log, nil))), &log
}

var errLost = errors.New("connection lost")

// answering is a probe of a deployment that answers when told to.
func answering(answers *atomic.Bool, asked *atomic.Int64) func(context.Context) error {
	return func(ctx context.Context) error {
		asked.Add(1)
		if answers.Load() {
			return nil
		}
		<-ctx.Done() // it stalls
		return ctx.Err()
	}
}

// TestCircuitOpensAndCloses: it opens when five commands have failed and nothing was heard for five seconds, is tried each second with nobody's command, and
// closes with the first answer.
func TestCircuitOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := circuitIn(t)
		var answers atomic.Bool
		var asked atomic.Int64
		began := time.Now()
		for i := range 5 {
			time.Sleep(2 * time.Second)
			if why := c.admit(); why != "" {
				t.Fatalf("it is open after %d failures: %s", i, why)
			}
			c.failed(began, errLost, answering(&answers, &asked))
		}
		if why := c.admit(); !strings.HasPrefix(why, "no reply for 10s, while 5 commands failed") || !strings.Contains(why, "connection lost") {
			t.Fatalf("after five failures in ten seconds: %q", why)
		}
		time.Sleep(1500 * time.Millisecond)
		if c.state() != halfOpen || c.admit() == "" {
			t.Errorf("while it is tried it is %v", c.state())
		}
		time.Sleep(2 * time.Second)
		before := asked.Load()
		time.Sleep(30 * time.Second)
		if tried := asked.Load() - before; tried < 9 || tried > 16 { // each second or as long as a try takes, which is two
			t.Errorf("it was tried %d times in half a minute", tried)
		}
		answers.Store(true)
		time.Sleep(3 * time.Second)
		if why := c.admit(); why != "" || c.state() != closed {
			t.Errorf("after an answer it is %v: %s", c.state(), why)
		}
		synctest.Wait() // for the log, which comes after the state
		if n := c.refused.Load(); n != 2 {
			t.Errorf("%d commands were refused", n)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `msg="circuit open"`) || !strings.Contains(lines[0], "reason=") || !strings.Contains(lines[1], `msg="circuit closed"`) {
			t.Errorf("the log is\n%s", log.String())
		}
	})
}

// TestCircuitStaysClosed: what a restart or an election does is no reason to open it.
func TestCircuitStaysClosed(t *testing.T) {
	for name, happens := range map[string]func(c *circuit, probe func(context.Context) error){
		"all that runs on a server is cut off at once": func(c *circuit, probe func(context.Context) error) {
			time.Sleep(time.Hour)
			began := time.Now()
			time.Sleep(time.Second)
			for range 100 {
				c.failed(began, errLost, probe)
			}
		},
		"some fail, others don't": func(c *circuit, probe func(context.Context) error) {
			for range 100 {
				began := time.Now()
				time.Sleep(4 * time.Second)
				c.failed(began, errLost, probe)
				c.replied(time.Now())
			}
		},
		"few commands": func(c *circuit, probe func(context.Context) error) {
			began := time.Now()
			time.Sleep(time.Minute)
			for range 4 {
				c.failed(began, errLost, probe)
			}
		},
		"a command that was there before the last reply": func(c *circuit, probe func(context.Context) error) {
			began := time.Now()
			time.Sleep(time.Minute)
			c.replied(time.Now())
			for range 10 {
				c.failed(began, errLost, probe)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := circuitIn(t)
				happens(c, func(context.Context) error { return nil })
				if why := c.admit(); why != "" {
					t.Errorf("it is open: %s", why)
				}
			})
		})
	}
}

// TestCircuitWhenCrowded: that commands are turned away from a long line shows, until one gets through without waiting.
func TestCircuitWhenCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := circuitIn(t)
		for range 3 {
			c.turnedAway(errLong)
		}
		if c.state() != crowded || c.refused.Load() != 3 || c.admit() != "" {
			t.Errorf("it is %v, %d were refused", c.state(), c.refused.Load())
		}
		c.flows()
		if c.state() != closed {
			t.Errorf("it is %v", c.state())
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("the log is\n%s", log.String())
		}
	})
}
