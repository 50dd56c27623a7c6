package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// served is a running oxbow serve.
type served struct {
	process *exec.Cmd
	lines   *bufio.Scanner // of its log
	read    []string
	uri     string
}

// startServe runs oxbow serve as a process of its own and waits until it serves.
func startServe(t *testing.T, file string) *served {
	t.Helper()
	s := &served{process: exec.Command(os.Args[0], "serve", "-c", file)}
	s.process.Env = append(os.Environ(), runAsOxbow+"=1")
	log, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.process.Process.Kill() })
	s.lines = bufio.NewScanner(log)
	_, address, _ := strings.Cut(s.await(t, "msg=serving"), "address=")
	s.uri = "mongodb://" + address
	return s
}

// await reads the log up to a line that holds a text.
func (s *served) await(t *testing.T, text string) string {
	t.Helper()
	for s.lines.Scan() {
		s.read = append(s.read, s.lines.Text())
		if strings.Contains(s.lines.Text(), text) {
			return s.lines.Text()
		}
	}
	t.Fatalf("no line with %q in the log:\n%s", text, strings.Join(s.read, "\n"))
	return ""
}

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// stop ends the process as a service manager does and checks that it takes that for a success.
func (s *served) stop(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	for s.lines.Scan() {
		s.read = append(s.read, s.lines.Text())
	}
	if err := s.process.Wait(); err != nil {
		t.Errorf("stop: %v\n%s", err, strings.Join(s.read, "\n"))
	}
}

// TestServe reloads, refuses to reload, stops, and serves the same data again.
func TestServe(t *testing.T) {
	folder := t.TempDir()
	config := func(layouts string) string {
		return gatewayConfig(folder, "collections:\n"+layouts)
	}
	const users = "  im.user: {hash: {field: uid, count: 4}}\n"
	file := writeFile(t, "oxbow.yaml", config(users))
	rewrite := func(layouts string) {
		if err := os.WriteFile(file, []byte(config(layouts)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := startServe(t, file)
	user := database(t, s.uri, "im").Collection("user")
	if _, err := user.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "uid", Value: 7}}); err != nil {
		t.Fatal(err)
	}
	list := func(ns string) (rows [][]string, err error) {
		stdout, _, err := oxbowCommand(t, nil, "partitions", "list", ns, "--uri", s.uri)
		if err != nil {
			return nil, err
		}
		return partitionRows(stdout), nil
	}

	_, err := list("im.message")
	wantError(t, err, "im.message has no layout")
	rewrite(users + "  im.message: {hash: {field: touid, count: 8}}\n")
	s.signal(t, syscall.SIGHUP)
	s.await(t, "configuration reloaded")
	if _, err := list("im.message"); err != nil {
		t.Errorf("after the reload: %v", err)
	}

	rewrite(strings.Replace(users, "count: 4", "count: 8", 1))
	s.signal(t, syscall.SIGHUP)
	refused := s.await(t, "configuration not reloaded")
	wantText(t, refused, "im.user", "count")
	if rows, err := list("im.user"); err != nil || len(rows) != 4 {
		t.Errorf("%d partitions after the refused reload, want the 4 of before: %v", len(rows), err)
	}
	if _, err := list("im.message"); err != nil {
		t.Errorf("after the refused reload: %v", err)
	}

	inUse := exec.Command(os.Args[0], "serve", "-c", writeFile(t, "second.yaml", config(users)))
	inUse.Env = append(os.Environ(), runAsOxbow+"=1")
	if out, err := inUse.CombinedOutput(); err == nil || !strings.Contains(string(out), folder) {
		t.Errorf("a second server in the same folder: %v, %s", err, out)
	}

	s.stop(t)
	rewrite(users + "  im.message: {hash: {field: touid, count: 8}}\n")
	s = startServe(t, file)
	if n := count(t, database(t, s.uri, "im").Collection("user"), bson.D{{Key: "uid", Value: 7}}); n != 1 {
		t.Errorf("%d documents after the restart, want 1", n)
	}
	s.stop(t)
}

// TestServeErrors checks that a configuration that can't be served is told with its line, and that nothing serves.
func TestServeErrors(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "listen: 127.0.0.1:0\ncolour: red\n", []string{"oxbow.yaml:2", "colour"}},
		{"beyond loopback", "listen: 0.0.0.0:0\n", []string{"0.0.0.0"}},
		{"unknown zone", "collections:\n  a.b:\n    time: {field: t, every: day, zone: Mars/Olympus}\n", []string{"oxbow.yaml:3", "Mars/Olympus"}},
		{"no slots", "collections:\n  a.b: {hash: {field: t, count: 0}}\n", []string{"oxbow.yaml:2", "count"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := exec.Command(os.Args[0], "serve", "-c", writeFile(t, "oxbow.yaml", test.text))
			c.Dir = t.TempDir()
			c.Env = append(os.Environ(), runAsOxbow+"=1")
			errs, err := c.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(errs)
			if err := c.Wait(); err == nil {
				t.Error("it served")
			}
			wantText(t, string(text), test.want...)
		})
	}
}
