package capped

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server process.
type Server struct {
	Address string // that it serves on, as its log says
	Limit   int64  // bytes of memory, page cache included; 0: none
	Why     string // why there is no limit

	process *exec.Cmd
	group   *Group
	log     tail
	ended   chan struct{}
	err     error // how the process ended
}

// startTime is how long a server may take until it serves: it may have a log to go through.
const startTime = 2 * time.Minute

// stopTime is how long it may take to end; then it is killed.
const stopTime = time.Minute

// Start starts a command that serves, with variables of its environment beside this process's, and waits until its log says "msg=serving address=…". memory limits
// it (0: it does not); where that is not possible it runs without a limit.
func Start(ctx context.Context, memory int64, environment []string, command ...string) (*Server, error) {
	s := &Server{ended: make(chan struct{})}
	if memory > 0 {
		if err := s.limit(memory); err != nil {
			s.Why = err.Error()
		}
	}
	if s.group != nil {
		// It joins the group before it becomes the server: what it takes from the beginning counts.
		command = append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, s.group.Processes()}, command...)
	}
	s.process = exec.Command(command[0], command[1:]...)
	s.process.Env = append(os.Environ(), environment...)
	s.process.SysProcAttr = apart()
	log, err := s.process.StderrPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the server: %w", err), s.removeGroup())
	}
	serving := make(chan string, 1)
	go s.read(log, serving)
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case s.Address = <-serving:
		return s, nil
	case <-s.ended:
		err = nil // Stop tells
	case <-timer.C:
		err = fmt.Errorf("the server does not serve after %s; its log ends with %s", startTime, s.log.String())
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, s.Stop())
}

func (s *Server) limit(memory int64) error {
	g, err := NewGroup(memory)
	if err != nil {
		return err
	}
	s.group = g
	s.Limit, err = g.Limit()
	return err
}

// read reads the log to its end, and then waits for the process.
func (s *Server) read(log io.Reader, serving chan<- string) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		s.log.add(lines.Text())
		if _, address, ok := strings.Cut(lines.Text(), "msg=serving address="); ok {
			select {
			case serving <- strings.TrimSpace(address):
			default:
			}
		}
	}
	io.Copy(io.Discard, log) // what is no line must not stop the process
	s.err = s.process.Wait()
	close(s.ended)
}

// Stop ends the process and removes its group. The error is that of a process that ended by itself, or had to be killed.
func (s *Server) Stop() error {
	select {
	case <-s.ended:
		return errors.Join(fmt.Errorf("the server ended by itself: %v; its log ends with %s", s.err, s.log.String()), s.removeGroup())
	default:
	}
	s.process.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case <-s.ended:
		err = s.err
	case <-time.After(stopTime):
		s.process.Process.Kill()
		<-s.ended
		err = fmt.Errorf("the server did not end within %s", stopTime)
	}
	return errors.Join(err, s.removeGroup())
}

func (s *Server) removeGroup() error {
	if s.group == nil {
		return nil
	}
	return s.group.Remove()
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 300 // slow commands are logged whole
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > 5 {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}
