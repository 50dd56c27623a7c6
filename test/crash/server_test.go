package crash

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// layouts are the collections with a layout; crash.plain has none.
const layouts = `
  crash.minutes: {time: {field: at, every: minute}}
  crash.hashed: {hash: {field: h, count: 8}, over: [a, b]}
  crash.both: {time: {field: at, every: minute}, hash: {field: h, count: 2}}
  crash.own: {time: {field: at, every: minute, as: database}}
  crash.kept: {time: {field: at, every: minute}, keep: 2m, hold: 0s, late: recreate}
  crash.turned: {time: {field: at, every: minute}, hash: {field: h, count: 2}}
  crash.gone: {time: {field: at, every: minute}, hash: {field: h, count: 2}}
`

// server is oxbow serve as a process, on one folder and one socket all the time.
type server struct {
	binary string
	config string
	socket string

	process *exec.Cmd
	log     []string      // of the running process
	serving chan bool     // told once: whether it serves, or has ended before
	ended   chan struct{} // closed when the process is gone
}

func newServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "oxbow") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{binary: filepath.Join(dir, "oxbow"), config: filepath.Join(dir, "oxbow.yaml"), socket: filepath.Join(dir, "o.sock")}
	build := exec.Command("go", "build", "-o", s.binary, "oxbow/cmd/oxbow")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	const backend = "{embedded: %q, cache: 8MiB, memtable: 1MiB}"
	text := fmt.Sprintf("backends:\n  a: "+backend+"\n  b: "+backend+"\ndatabases: {\"*\": a}\ncollections:%s",
		filepath.Join(dir, "a"), filepath.Join(dir, "b"), layouts)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.process != nil {
			s.kill(t)
		}
	})
	return s
}

// start starts the process; see awaitServing.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.binary, "serve", "-c", s.config, "--listen", s.socket)
	out, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	s.log, s.serving, s.ended = nil, make(chan bool, 1), make(chan struct{})
	go func(serving chan bool, ended chan struct{}) {
		defer close(ended)
		told := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.log = append(s.log, lines.Text())
			if !told && strings.Contains(lines.Text(), "msg=serving") {
				serving <- true
				told = true
			}
		}
		if !told {
			serving <- false
		}
	}(s.serving, s.ended)
}

func (s *server) awaitServing(t *testing.T) {
	t.Helper()
	if !<-s.serving {
		<-s.ended
		t.Fatalf("the server has not started:\n%s", strings.Join(s.log, "\n"))
	}
}

// kill ends the process as it stands.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
	<-s.ended
	s.process.Wait() // always an error: it was killed
	for _, line := range s.log {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic:") || strings.Contains(line, "could not be finished") ||
			strings.Contains(line, "the catalog does not know it") {
			t.Errorf("the server's log: %s", line)
		}
	}
	s.process = nil
}

// connect makes a client.
func (s *server) connect(t *testing.T, retryWrites bool) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI("mongodb://" + strings.ReplaceAll(s.socket, "/", "%2F")).SetRetryWrites(retryWrites).
		SetServerSelectionTimeout(time.Minute).SetHeartbeatInterval(500 * time.Millisecond)
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// between returns a random time.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}
