package failures

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oxbow"
)

// configVariable makes this test binary a gateway with the configuration in it.
const configVariable = "OXBOW_TEST_GATEWAY"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(configVariable); ok {
		serveForEver([]byte(text))
	}
	os.Exit(m.Run())
}

// serveForEver opens a gateway, prints its address and ends with the process.
func serveForEver(config []byte) {
	log := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	g, err := oxbow.Open(context.Background(), oxbow.Options{Listen: "127.0.0.1:0", Config: config, UpkeepEvery: time.Hour, Log: log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(g.Addr())
	select {}
}

// process is a gateway in a process of its own, which can be killed as a process is.
type process struct {
	name  string
	sets  []*set
	relay *relay

	starts  int
	app     string
	running *exec.Cmd
}

func newProcess(t *testing.T, name string, sets []*set) *process {
	t.Helper()
	p := &process{name: name, sets: sets, relay: newRelay(t)}
	p.start(t)
	t.Cleanup(p.kill)
	return p
}

// start starts it and waits until it serves.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.starts++
	p.app = fmt.Sprintf("%s.%d", p.name, p.starts)
	p.running = exec.Command(os.Args[0])
	p.running.Env = append(os.Environ(), configVariable+"="+configuration(p.app, p.sets, ""))
	p.running.Stderr = os.Stderr
	out, err := p.running.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.running.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("gateway %s has not started: %v", p.app, err)
	}
	p.relay.point(strings.TrimSpace(address))
}

// kill ends the process as it stands.
func (p *process) kill() {
	p.running.Process.Kill() // fails when it was killed before
	p.running.Wait()         // always an error: it was killed
	p.relay.point("")
}
