package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/memory"
)

func reader(b []byte) io.Reader { return bytes.NewReader(b) }

func isBeyond(err error) bool { return errors.Is(err, ErrBeyondLoopback) }

// gate is a command that waits until it is opened or its context ends.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	ended   chan error // the context's cause, or nil
}

func newGate() *gate {
	return &gate{entered: make(chan struct{}, 16), open: make(chan struct{}), ended: make(chan error, 16)}
}

func (g *gate) register(name string, writes bool) func(*command.Table) {
	return func(table *command.Table) {
		table.Register(name, command.Entry{Writes: writes, Handler: func(ctx context.Context, _ *command.Request, r *command.Reply) error {
			g.entered <- struct{}{}
			select {
			case <-g.open:
				g.ended <- nil
				r.Elements = bsoncore.AppendBooleanElement(r.Elements, "waited", true)
				return nil
			case <-ctx.Done():
				g.ended <- context.Cause(ctx)
				return ctx.Err()
			}
		}})
	}
}

func wait(name string) driver.D { return driver.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}} }

func TestStopLetsRunningCommandsFinish(t *testing.T) {
	g := newGate()
	s := serve(t, Options{}, g.register("wait", true))
	busy, idle := s.dial(t), s.dial(t)
	if r := idle.ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatal(r.doc)
	}
	busy.send(encode(t, 0, wait("wait")))
	<-g.entered
	stopped := make(chan error)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	eventually(t, "new connections are refused", func() bool {
		nc, err := net.Dial("tcp", s.address)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	if r := idle.ask(ping()); r.doc["code"] != int32(91) || r.doc["codeName"] != "ShutdownInProgress" {
		t.Fatalf("a new command gets %v", r.doc)
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a running command: %v", err)
	default:
	}
	close(g.open)
	if r := busy.receive(); r.doc["waited"] != true {
		t.Fatalf("the running command got %v", r.doc)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	busy.mustBeClosed()
	idle.mustBeClosed()
}

// held is a cursor's content that notes whether it was closed.
type held struct{ closed bool }

func (h *held) NextBatch(_ context.Context, dst []byte, _, _ int, _ *memory.Account) ([]byte, int, bool, error) {
	return dst, 0, true, nil
}
func (h *held) Close() error { h.closed = true; return nil }

func TestStopClosesCursors(t *testing.T) {
	s := serve(t, Options{})
	h := &held{}
	if _, err := s.cursors.Add(h, cursor.Options{NoTimeout: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil || !h.closed {
		t.Fatalf("shutdown: %v; cursor closed: %v", err, h.closed)
	}
}

func TestStopInterruptsAfterItsGrace(t *testing.T) {
	g := newGate()
	s := serve(t, Options{}, g.register("wait", true))
	c := s.dial(t)
	c.send(encode(t, 0, wait("wait")))
	<-g.entered
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Fatalf("shutdown gives %v", err)
	}
	if r := c.receive(); r.doc["codeName"] != "InterruptedAtShutdown" {
		t.Fatalf("the interrupted command got %v", r.doc)
	}
	if n := s.table.Operations().Running(); n != 0 {
		t.Fatalf("%d commands run on", n)
	}
}

func TestLostClient(t *testing.T) {
	reads, writes := newGate(), newGate()
	s := serve(t, Options{GoneEvery: time.Millisecond}, reads.register("read", false), writes.register("write", true))
	gone, stays := s.dial(t), s.dial(t)
	gone.send(encode(t, 0, wait("read")))
	stays.send(encode(t, 0, wait("read")))
	writer := s.dial(t)
	writer.send(encode(t, 0, wait("write")))
	<-reads.entered
	<-reads.entered
	<-writes.entered
	gone.Close()
	writer.Close()
	if err := <-reads.ended; err == nil {
		t.Fatal("the read of a lost client ran to its end")
	}
	// The write has been lost for as long as the read; it is still there, and so is the other read.
	eventually(t, "the lost read's connection ends", func() bool { return s.counters.ConnectionsCurrent.Load() == 2 })
	if n := s.table.Operations().Running(); n != 2 {
		t.Fatalf("%d commands run, want the write and the other read", n)
	}
	close(writes.open)
	if err := <-writes.ended; err != nil {
		t.Fatalf("the write of a lost client ended with %v", err)
	}
	close(reads.open)
	if r := stays.receive(); r.doc["waited"] != true {
		t.Fatalf("the other read got %v", r.doc)
	}
}

func TestClientThatStallsInAMessage(t *testing.T) {
	s := serve(t, Options{StallTimeout: 20 * time.Millisecond})
	quiet := s.dial(t)
	good := encode(t, 0, ping())
	for _, n := range []int{3, 16, len(good) - 1} {
		c := s.dial(t)
		c.send(good[:n])
		c.mustBeClosed()
	}
	eventually(t, "three lines in the log", func() bool { return s.log.lines("client stalled") == 3 })
	if r := quiet.ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatalf("a client that was silent between messages gets %v", r.doc)
	}
}

func TestClientThatReadsNothing(t *testing.T) {
	s := serve(t, Options{StallTimeout: 20 * time.Millisecond}, func(table *command.Table) {
		table.Register("big", command.Entry{Handler: func(_ context.Context, _ *command.Request, r *command.Reply) error {
			r.Elements = bsoncore.AppendBinaryElement(r.Elements, "b", 0, make([]byte, 15<<20))
			return nil
		}})
	})
	c := s.dial(t)
	for range 4 {
		c.send(encode(t, 0, wait("big")))
	}
	eventually(t, "it is let go", func() bool {
		return s.counters.ConnectionsTotal.Load() == 1 && s.counters.ConnectionsCurrent.Load() == 0
	})
	if s.log.lines("client stalled") != 1 {
		t.Fatal("not in the log")
	}
	s.mustAnswer(t)
}

func TestTooManyConnections(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Connections: 2}})
	first := s.dial(t)
	first.ask(ping())
	s.dial(t).ask(ping())
	third := s.dial(t)
	if r := third.ask(ping()); r.doc["ok"] != 0.0 || r.doc["errmsg"] != "too many connections: the limit is 2" {
		t.Fatalf("the third gets %v", r.doc)
	}
	third.mustBeClosed()
	first.Close()
	eventually(t, "a place is free", func() bool { return s.counters.ConnectionsCurrent.Load() == 1 })
	s.mustAnswer(t)
	if n := s.counters.ConnectionsRejected.Load(); n != 1 {
		t.Fatalf("%d rejections counted", n)
	}
}

func TestPanicInAHandler(t *testing.T) {
	s := serve(t, Options{}, func(table *command.Table) {
		table.Register("boom", command.Entry{Handler: func(context.Context, *command.Request, *command.Reply) error { panic("boom") }})
	})
	c := s.dial(t)
	if r := c.ask(wait("boom")); r.doc["codeName"] != "InternalError" {
		t.Fatal(r.doc)
	}
	if r := c.ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatal(r.doc)
	}
	if s.log.lines("lifecycle_test.go") != 1 {
		t.Fatal("the log has no stack of it")
	}
}
