package server

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/command"
	"oxbow/internal/wire"
)

// query is an OP_QUERY.
func query(t testing.TB, namespace string, d driver.D) []byte {
	t.Helper()
	doc, err := driver.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, wire.HeaderSize+4)
	b = append(append(b, namespace...), 0)
	b = append(append(b, make([]byte, 8)...), doc...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], 7)
	binary.LittleEndian.PutUint32(b[12:], uint32(wire.OpQuery))
	return b
}

func TestBadBytesEndOnlyTheirConnection(t *testing.T) {
	s := serve(t, Options{})
	bystander := s.dial(t)
	good := encode(t, 0, ping())
	with := func(at int, v uint32) []byte {
		b := append([]byte(nil), good...)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	bad := map[string][]byte{
		"http":                []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"zeros":               make([]byte, 64),
		"negative length":     with(0, 0xfffffff0),
		"length over limit":   with(0, 48_000_001),
		"legacy insert":       with(12, 2002),
		"document that lies":  with(wire.ReplyRoom, 1000),
		"value that lies":     append(append([]byte(nil), good[:wire.ReplyRoom+4]...), append([]byte{2}, good[wire.ReplyRoom+5:]...)...),
		"wrong checksum":      append(with(0, uint32(len(good)+4))[:16], append([]byte{1, 0, 0, 0}, append(good[20:len(good):len(good)], 1, 2, 3, 4)...)...),
		"compressed nonsense": append(append(with(12, 2012)[:16], 0xdd, 7, 0, 0, 0xff, 0xff, 0, 0, 3), good[25:]...),
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			before := s.log.lines("connection closed")
			c := s.dial(t)
			c.send(b)
			c.mustBeClosed()
			eventually(t, "one log line", func() bool { return s.log.lines("connection closed") == before+1 })
			if r := bystander.ask(ping()); r.doc["ok"] != 1.0 {
				t.Fatalf("another connection gets %v", r.doc)
			}
		})
	}
	s.mustAnswer(t)
	if n := s.counters.BadMessages.Load(); n != int64(len(bad)) {
		t.Errorf("%d bad messages counted of %d", n, len(bad))
	}
	if n := s.counters.Panics.Load(); n != 0 {
		t.Errorf("%d panics", n)
	}
}

func TestCutMessageEndsItsConnection(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial(t)
	good := encode(t, 0, ping())
	c.send(good[:len(good)-3])
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.mustBeClosed()
	s.mustAnswer(t)
}

func TestContentErrorsAreAnswered(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial(t)
	deep := driver.D{{Key: "x", Value: 1}}
	for range wire.CommandDepth {
		deep = driver.D{{Key: "x", Value: deep}}
	}
	for _, b := range [][]byte{
		encode(t, 0, driver.D{{Key: "ping", Value: deep}, {Key: "$db", Value: "admin"}}),
		encode(t, 1<<4, ping()),
	} {
		c.send(b)
		if r := c.receive(); r.doc["ok"] != 0.0 || r.responseTo != 7 {
			t.Fatalf("got %v", r)
		}
	}
	if r := c.ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatalf("the connection goes on, but got %v", r.doc)
	}
}

func TestHandshakeByQuery(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial(t)
	for _, d := range []driver.D{
		{{Key: "isMaster", Value: 1}},
		{{Key: "hello", Value: 1}},
		{{Key: "$query", Value: driver.D{{Key: "ismaster", Value: 1}}}, {Key: "$readPreference", Value: driver.D{{Key: "mode", Value: "nearest"}}}},
	} {
		c.send(query(t, "admin.$cmd", d))
		if r := c.receive(); r.opCode != wire.OpReply || r.doc["ok"] != 1.0 || r.doc["msg"] != "isdbgrid" || r.responseTo != 7 {
			t.Fatalf("%v: got %v", d, r)
		}
	}
	for namespace, d := range map[string]driver.D{"admin.$cmd": {{Key: "ping", Value: 1}}, "shop.things": {{Key: "a", Value: 1}}} {
		c.send(query(t, namespace, d))
		if r := c.receive(); r.opCode != wire.OpReply || r.doc["code"] != int32(352) {
			t.Fatalf("%s: got %v", namespace, r)
		}
	}
}

func TestFireAndForget(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial(t)
	c.send(encode(t, wire.MoreToCome, driver.D{{Key: "nonsense", Value: 1}, {Key: "$db", Value: "x"}}))
	c.send(encode(t, wire.MoreToCome|1<<4, ping()))
	if r := c.ask(ping()); r.doc["ok"] != 1.0 {
		t.Fatalf("the reply to the third message is %v: the first two must have none", r.doc)
	}
}

func TestChecksumIsAnsweredInKind(t *testing.T) {
	whole, err := driver.Marshal(driver.D{{Key: "whole", Value: true}, {Key: "ok", Value: 1.0}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{}, func(table *command.Table) {
		table.Register("whole", command.Entry{Handler: func(_ context.Context, _ *command.Request, r *command.Reply) error {
			r.Document = whole
			return nil
		}})
	})
	c := s.dial(t)
	for _, name := range []string{"ping", "whole"} {
		c.send(encode(t, wire.ChecksumPresent, driver.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}}))
		r := c.receive()
		m, err := wire.NewReader(reader(r.raw)).Next()
		if err != nil || r.flags&wire.ChecksumPresent == 0 {
			t.Fatal(name, err, r.flags)
		}
		if err := m.Parse(); err != nil {
			t.Fatal(name, err)
		}
		if r := c.ask(driver.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}}); r.flags != 0 || r.doc["ok"] != 1.0 {
			t.Fatalf("%s: flags %b, %v", name, r.flags, r.doc)
		}
	}
}

func TestSequencesReachTheHandler(t *testing.T) {
	s := serve(t, Options{}, func(table *command.Table) {
		table.Register("count", command.Entry{Handler: func(_ context.Context, req *command.Request, r *command.Reply) error {
			docs, _ := req.Sequence("documents")
			r.Elements = bsoncore.AppendInt32Element(r.Elements, "n", int32(len(docs)))
			return nil
		}})
	})
	c := s.dial(t)
	b := encode(t, 0, driver.D{{Key: "count", Value: 1}, {Key: "$db", Value: "x"}})
	empty := []byte{5, 0, 0, 0, 0}
	for n := range 4 {
		section := append([]byte{1, 0, 0, 0, 0}, "documents\x00"...)
		for range n {
			section = append(section, empty...)
		}
		binary.LittleEndian.PutUint32(section[1:], uint32(len(section)-1))
		m := append(b[:len(b):len(b)], section...)
		binary.LittleEndian.PutUint32(m, uint32(len(m)))
		c.send(m)
		if r := c.receive(); r.doc["n"] != int32(n) {
			t.Fatalf("%d documents: %v", n, r.doc)
		}
	}
}

func TestExhaustHelloStreams(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial(t)
	version := c.ask(driver.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}).doc["topologyVersion"]
	c.send(encode(t, wire.ExhaustAllowed, driver.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: version},
		{Key: "maxAwaitTimeMS", Value: 1}, {Key: "$db", Value: "admin"}}))
	last := int32(7)
	for range 3 {
		r := c.receive()
		if r.flags&wire.MoreToCome == 0 || r.responseTo != last || r.doc["ok"] != 1.0 {
			t.Fatalf("flags %b, response to %d, want %d: %v", r.flags, r.responseTo, last, r.doc)
		}
		last = r.requestID
	}
	c.Close()
	eventually(t, "the stream ends with its client", func() bool { return s.counters.ConnectionsCurrent.Load() == 0 })
}

func TestReplyTooLarge(t *testing.T) {
	for _, whole := range []bool{false, true} {
		s := serve(t, Options{}, func(table *command.Table) {
			table.Register("big", command.Entry{Handler: func(_ context.Context, _ *command.Request, r *command.Reply) error {
				if whole {
					r.Document = bsoncore.NewDocumentBuilder().AppendBinary("b", 0, make([]byte, bson.MaxInternalSize)).AppendDouble("ok", 1).Build()
				} else {
					r.Elements = bsoncore.AppendBinaryElement(r.Elements, "b", 0, make([]byte, bson.MaxInternalSize))
				}
				return nil
			}})
		})
		if r := s.dial(t).ask(driver.D{{Key: "big", Value: 1}, {Key: "$db", Value: "x"}}); r.doc["code"] != int32(10334) {
			t.Fatalf("whole %v: %v", whole, r.doc)
		}
	}
}

func TestLargeReplies(t *testing.T) {
	content := make([]byte, 15<<20)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	s := serve(t, Options{}, func(table *command.Table) {
		table.Register("big", command.Entry{Handler: func(_ context.Context, req *command.Request, r *command.Reply) error {
			if req.Argument.StringValue() == "whole" {
				r.Document = bsoncore.NewDocumentBuilder().AppendBinary("b", 0, content).AppendDouble("ok", 1).Build()
			} else {
				r.Elements = bsoncore.AppendBinaryElement(r.Elements, "b", 0, content)
			}
			return nil
		}})
	})
	c := s.dial(t)
	for _, how := range []string{"whole", "elements"} {
		r := c.ask(driver.D{{Key: "big", Value: how}, {Key: "$db", Value: "x"}})
		if b, _ := r.doc["b"].(driver.Binary); string(b.Data) != string(content) {
			t.Fatalf("%s: %d bytes came", how, len(b.Data))
		}
	}
}

// A socket's clients come from no address, so as many may come as there may be in all.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oxbow.sock")
	l, err := Listen(path, false)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, Options{Limits: Limits{PerAddress: 1}})
	if _, err := Listen(path, false); err == nil {
		t.Fatal("a socket that is served was taken over")
	}
	for range 2 {
		nc, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c := &client{nc, t}
		if r := c.ask(ping()); r.doc["ok"] != 1.0 {
			t.Fatal(r.doc)
		}
	}
}

// A socket that a process left behind when it was killed is taken over; one whose process is too busy to accept is not.
func TestUnixSocketLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oxbow.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	l, err := Listen(path, false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	busy, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(busy)
	if err := errors.Join(syscall.Bind(busy, &syscall.SockaddrUnix{Name: path}), syscall.Listen(busy, 0)); err != nil {
		t.Fatal(err)
	}
	for { // until nobody more can wait
		nc, err := net.DialTimeout("unix", path, 10*time.Millisecond)
		if err != nil {
			break
		}
		defer nc.Close()
	}
	if l, err := Listen(path, false); err == nil {
		l.Close()
		t.Fatal("the socket of a busy process was taken over")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of a busy process: %v", err)
	}
}

func TestListenRefusesMoreThanLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "8.8.8.8:0"} {
		l, err := Listen(address, false)
		if err == nil {
			l.Close()
			t.Errorf("%s: listening", address)
			continue
		}
		if !isBeyond(err) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if l, err := Listen("0.0.0.0:0", true); err != nil {
		t.Errorf("where clients have to log in: %v", err)
	} else {
		l.Close()
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.8.9.10:0"} {
		l, err := Listen(address, false)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		l.Close()
	}
	if _, err := Listen("nonsense", false); err == nil || isBeyond(err) {
		t.Errorf("nonsense: %v", err)
	}
}
