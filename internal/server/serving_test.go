package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/wire"
)

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) lines(containing string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range bytes.Lines(l.b.Bytes()) {
		if bytes.Contains(line, []byte(containing)) {
			n++
		}
	}
	return n
}

// served is a server under test.
type served struct {
	*Server
	table    *command.Table
	counters *command.Counters
	cursors  *cursor.Registry
	log      *logBuffer
	address  string
}

// serve starts a server on a free port and stops it when the test ends.
func serve(t testing.TB, o Options, prepare ...func(*command.Table)) *served {
	t.Helper()
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, o, prepare...)
}

func serveOn(t testing.TB, l net.Listener, o Options, prepare ...func(*command.Table)) *served {
	t.Helper()
	s := &served{counters: &command.Counters{}, cursors: cursor.NewRegistry(cursor.IdleTimeout, nil), log: &logBuffer{}, address: l.Addr().String()}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.table = command.New(command.Deps{
		Log: log, Now: time.Now, Counters: s.counters,
		Sessions: cursor.NewSessions(cursor.SessionTimeout),
		Cursors:  s.cursors,
		Server:   command.ServerInfo{Version: "7.0.14", Host: s.address, Address: s.address, Started: time.Now()},
	})
	for _, p := range prepare {
		p(s.table)
	}
	s.Server = New(l, s.table, s.counters, log, o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// client is a bare connection.
type client struct {
	net.Conn
	t testing.TB
}

func (s *served) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	// Long enough never to decide a test, short enough to end one that hangs.
	nc.SetDeadline(time.Now().Add(time.Minute))
	return &client{nc, t}
}

// encode makes an OP_MSG with one body.
func encode(t testing.TB, flags wire.Flags, d driver.D) []byte {
	t.Helper()
	b, err := driver.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return wire.FinishReply(append(make([]byte, wire.ReplyRoom), b...), 7, 0, flags)
}

func ping() driver.D { return driver.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}} }

// send writes raw bytes.
func (c *client) send(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// reply is one reply as it came.
type reply struct {
	requestID, responseTo int32
	opCode                wire.OpCode
	flags                 wire.Flags // of an OP_MSG
	raw                   []byte
	doc                   driver.M
}

func (c *client) receive() reply {
	c.t.Helper()
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, head); err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	rest := make([]byte, binary.LittleEndian.Uint32(head)-wire.HeaderSize)
	if _, err := io.ReadFull(c, rest); err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	r := reply{
		requestID: int32(binary.LittleEndian.Uint32(head[4:])), responseTo: int32(binary.LittleEndian.Uint32(head[8:])),
		opCode: wire.OpCode(binary.LittleEndian.Uint32(head[12:])), raw: append(head, rest...),
	}
	var doc bson.Document
	switch r.opCode {
	case wire.OpMsg:
		r.flags = wire.Flags(binary.LittleEndian.Uint32(rest))
		doc = rest[5:]
		if r.flags&wire.ChecksumPresent != 0 {
			doc = doc[:len(doc)-4]
		}
	case wire.OpReply:
		doc = rest[20:]
	default:
		return r
	}
	if err := driver.Unmarshal(doc, &r.doc); err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	return r
}

// ask sends a command and returns its reply.
func (c *client) ask(d driver.D) reply {
	c.t.Helper()
	c.send(encode(c.t, 0, d))
	return c.receive()
}

// mustBeClosed waits until the server closes the connection, with nothing more said.
func (c *client) mustBeClosed() {
	c.t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n != 0 || err == nil || isTimeout(err) {
		c.t.Fatalf("not closed: %d bytes, %v", n, err)
	}
}

func isTimeout(err error) bool {
	t, ok := err.(net.Error)
	return ok && t.Timeout()
}

// mustAnswer checks that the server still serves.
func (s *served) mustAnswer(t testing.TB) {
	t.Helper()
	if r := s.dial(t).ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatalf("a new connection gets %v", r.doc)
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
