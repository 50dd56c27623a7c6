package gateways

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// factor is how many times as fast the gateways' clock is.
const factor = 60

// clock is the gateways' clock.
type clock struct{ at, begin time.Time }

// newClock is behind the machine's for as long as a test runs: retention goes by the lesser of a gateway's clock and its server's.
func newClock(lasts time.Duration) clock {
	at := time.Now().Truncate(time.Millisecond)
	return clock{at: at, begin: at.Add(-factor * (lasts + time.Hour)).Truncate(time.Hour)}
}

func (c clock) now() time.Time { return c.begin.Add(time.Since(c.at) * factor) }

func (c clock) String() string {
	return fmt.Sprintf("%d %d %d", c.at.UnixMilli(), c.begin.UnixMilli(), factor)
}

// gateway is a process, on one socket all the time.
type gateway struct {
	binary, config, socket string
	clock                  clock
	name                   string

	process *exec.Cmd
	serving chan bool // told once: whether it serves, or has ended before
	ended   chan struct{}
	log     *os.File
}

// build builds the binary that serves when the environment asks for it.
func build(t *testing.T, dir string) string {
	t.Helper()
	binary := dir + "/gateway"
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "oxbow").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func (g *gateway) start(t *testing.T) {
	t.Helper()
	g.process = exec.Command(g.binary)
	g.process.Env = append(os.Environ(), "OXBOW_TEST_CONFIG="+g.config, "OXBOW_TEST_LISTEN="+g.socket, "OXBOW_TEST_CLOCK="+g.clock.String())
	out, err := g.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	g.serving, g.ended = make(chan bool, 1), make(chan struct{})
	go func(serving chan bool, ended chan struct{}) {
		defer close(ended)
		told := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(g.log, lines.Text())
			if strings.Contains(lines.Text(), "level=ERROR") || strings.Contains(lines.Text(), "panic:") {
				t.Errorf("the log of gateway %s: %s", g.name, lines.Text())
			}
			if !told && strings.Contains(lines.Text(), "msg=serving") {
				serving <- true
				told = true
			}
		}
		if !told {
			serving <- false
		}
	}(g.serving, g.ended)
}

// kill ends the process as it stands, stopped or not.
func (g *gateway) kill(t *testing.T) { g.signal(t, syscall.SIGKILL) }

// end asks the process to stop, and waits until it has.
func (g *gateway) end(t *testing.T) { g.signal(t, syscall.SIGTERM) }

func (g *gateway) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := g.process.Process.Signal(s); err != nil {
		t.Errorf("signal %s: %v", s, err)
	}
	<-g.ended
	g.process.Wait() // an error when it was killed
}
