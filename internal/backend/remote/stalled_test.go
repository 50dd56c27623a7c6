package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/mongoerr"
)

// valve stands between a backend and its server, and lets nothing through while it is shut.
type valve struct {
	net.Listener
	target string
	mu     sync.RWMutex // held for reading by what lets bytes through, for writing while it is shut
}

func newValve(t *testing.T, uri string) *valve {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{Listener: l, target: strings.Trim(strings.TrimPrefix(uri, "mongodb://"), "/")}
	t.Cleanup(func() { l.Close() })
	go v.run()
	return v
}

func (v *valve) run() {
	for {
		in, err := v.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", v.target)
		if err != nil {
			in.Close()
			continue
		}
		go v.pass(out, in)
		go v.pass(in, out)
	}
}

func (v *valve) pass(to io.WriteCloser, from io.ReadCloser) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		v.mu.RLock()
		_, failed := to.Write(buf[:n])
		v.mu.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestStalledServer: of a server that answers nothing any more some commands hang, some wait for a connection and give up, and then all are turned away at
// once; when it answers again, those that hung get their replies, and commands go again.
func TestStalledServer(t *testing.T) {
	v := newValve(t, serve(t, asTheyCame))
	var log syncBuffer
	b, err := OpenNamed("rs1", "mongodb://"+v.Addr().String()+"/?maxPoolSize=2&waitQueueTimeoutMS=600", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	run := func() error {
		_, err := b.Run(context.Background(), &backend.Request{Body: pingCommand})
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	hung := make(chan error, 2)
	for range cap(hung) {
		go func() { hung <- run() }()
	}
	await(t, "both connections are in use", func() bool { return b.Figures().InUse == 2 })
	codes := map[mongoerr.Code]int{}
	await(t, "the circuit opens", func() bool {
		err := run()
		var known *mongoerr.Error
		if !errors.Is(err, backend.ErrUnavailable) || !errors.As(err, &known) || !strings.Contains(known.Message, "backend rs1") {
			t.Fatalf("the error is %v", err)
		}
		codes[known.Code]++
		return b.Figures().Circuit == "open"
	})
	if codes[mongoerr.ExceededTimeLimit] < openAfter {
		t.Errorf("the errors before were %v", codes)
	}
	for range 1000 {
		if err := run(); !mongoerr.Is(err, mongoerr.HostUnreachable) {
			t.Fatalf("with the circuit open: %v", err)
		}
	}
	v.mu.Unlock()
	for range cap(hung) {
		if err := <-hung; err != nil {
			t.Errorf("a command that hung: %v", err)
		}
	}
	await(t, "commands go again", func() bool { return run() == nil })
	if f := b.Figures(); f.Circuit != "closed" || f.Refused < 1000 || f.Open == 0 || f.Open > 2 {
		t.Errorf("the figures are %+v", f)
	}
	await(t, "the log tells of both", func() bool {
		text := log.String()
		return strings.Contains(text, `msg="circuit open"`) && strings.Contains(text, `msg="circuit closed"`)
	})
}

// TestAnswerAfterTheTime: a server that answers just after the command's time, which it has too, is heard, and its connection is used again.
func TestAnswerAfterTheTime(t *testing.T) {
	v := newValve(t, serve(t, asTheyCame))
	b := connect(t, "mongodb://"+v.Addr().String()+"/")
	run := func(ctx context.Context) error {
		_, err := b.Run(ctx, &backend.Request{Body: pingCommand})
		return err
	}
	await(t, "an answer in the time after the time", func() bool {
		if err := run(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := b.dialer.names()
		v.mu.Lock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		time.AfterFunc(60*time.Millisecond, v.mu.Unlock)
		if run(ctx) != nil { // the machine is busy
			return false
		}
		if err := run(t.Context()); err != nil || b.dialer.names() != before {
			t.Errorf("after it: %v, over %s, before over %s", err, b.dialer.names(), before)
		}
		return true
	})
}

// names are those of the links that commands go over.
func (d *dialer) names() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var names []string
	for name, l := range d.mu.links {
		if l.lent.Load() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
