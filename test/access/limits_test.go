package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
	"oxbow/internal/auth"
)

// Codes of MongoDB.
const (
	operationFailed   = 96
	rateLimitExceeded = 462
)

// socket is a client without a driver.
type socket struct {
	net.Conn
	t *testing.T
}

// dial connects from an address of this machine.
func (g *gateway) dial(t *testing.T, from string) *socket {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.DialContext(t.Context(), "tcp", g.Addr().String())
	must(t, "dial", err)
	t.Cleanup(func() { nc.Close() })
	must(t, "set a deadline", nc.SetDeadline(time.Now().Add(time.Minute))) // long enough never to decide a test
	return &socket{nc, t}
}

// try sends a command of admin and returns the answer, or the error of a connection that is closed.
func (s *socket) try(cmd bson.D) (bson.M, error) {
	s.t.Helper()
	body, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: "admin"}))
	must(s.t, "marshal", err)
	m := make([]byte, 21, 21+len(body))
	binary.LittleEndian.PutUint32(m, uint32(21+len(body)))
	binary.LittleEndian.PutUint32(m[12:], 2013) // OP_MSG
	if _, err := s.Write(append(m, body...)); err != nil {
		return nil, err
	}
	head := make([]byte, 16)
	if _, err := io.ReadFull(s, head); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.LittleEndian.Uint32(head)-16)
	if _, err := io.ReadFull(s, rest); err != nil {
		return nil, err
	}
	var answer bson.M
	return answer, bson.Unmarshal(rest[5:], &answer)
}

// ask is try of a connection that is there.
func (s *socket) ask(command string) bson.M {
	s.t.Helper()
	answer, err := s.try(bson.D{{Key: command, Value: 1}})
	must(s.t, command, err)
	return answer
}

// mustEnd waits until the server closes the connection.
func (s *socket) mustEnd(what string) {
	s.t.Helper()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		s.t.Errorf("%s: %v", what, err)
	}
}

// metrics reads all figures.
func (g *gateway) metrics(t *testing.T) string {
	t.Helper()
	answer, err := http.Get("http://" + g.HTTPAddr().String() + "/metrics")
	must(t, "get the metrics", err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, "read the metrics", err)
	return string(text)
}

// metric reads a figure.
func (g *gateway) metric(t *testing.T, series string) string {
	t.Helper()
	for line := range strings.Lines(g.metrics(t)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no metric %s", series)
	return ""
}

func (g *gateway) mustHaveRefused(t *testing.T, limit, want string) {
	t.Helper()
	if got := g.metric(t, `oxbow_refused_total{limit="`+limit+`"}`); got != want {
		t.Errorf("%s of limit %s are counted, not %s", got, limit, want)
	}
	if got := strings.Contains(g.log.String(), "refused by limits."+limit); got != (want != "0") {
		t.Errorf("the log tells of limit %s: %v", limit, got)
	}
}

// TestConnectionLimits fills the places of one address, then all; the ones left are what serverStatus says.
func TestConnectionLimits(t *testing.T) {
	g := serve(t, "http: 127.0.0.1:0\nlimits: {connections: {total: 4, address: 3}}\n")
	var mine []*socket
	for range 3 {
		s := g.dial(t, "127.0.0.1")
		s.ask("ping")
		mine = append(mine, s)
	}
	one := g.dial(t, "127.0.0.1")
	if a := one.ask("ping"); a["code"] != int32(operationFailed) || a["errmsg"] != "too many connections from this address: the limit is 3" {
		t.Errorf("a fourth connection of an address: %v", a)
	}
	one.mustEnd("a fourth connection of an address")
	g.dial(t, "127.0.0.2").ask("ping")
	full := g.dial(t, "127.0.0.3")
	if a := full.ask("ping"); a["code"] != int32(operationFailed) || a["errmsg"] != "too many connections: the limit is 4" {
		t.Errorf("a fifth connection: %v", a)
	}
	status := mine[0].ask("serverStatus")["connections"].(bson.D)
	for key, want := range map[string]int64{"current": 4, "available": 0, "rejected": 2, "totalCreated": 4} {
		for _, e := range status {
			if e.Key == key && e.Value != want {
				t.Errorf("connections.%s is %v, not %d", key, e.Value, want)
			}
		}
	}
	g.mustHaveRefused(t, "connections.address", "1")
	g.mustHaveRefused(t, "connections.total", "1")
	mine[2].Close()
	for { // until its place is free
		if a, err := g.dial(t, "127.0.0.1").try(bson.D{{Key: "ping", Value: 1}}); err == nil && a["ok"] == 1.0 {
			break
		}
	}
}

// alone returns a client with one connection for commands.
func (g *gateway) alone(t *testing.T, user string) *mongo.Client {
	t.Helper()
	return g.connect(t, credential(options.Client().SetMaxPoolSize(1), user, "", password))
}

// TestConnectionsOfAUser: as many connections as allowed may log in as a user; the places of those that end or log out are free.
func TestConnectionsOfAUser(t *testing.T) {
	one := auth.Mechanisms()[:1]
	g := serve(t, "http: 127.0.0.1:0\nlimits: {connections: {user: 2}}\nusers:\n"+entry(t, "ada@shop", one, "read")+entry(t, "bob@shop", one, "read"))
	first := g.alone(t, "ada@shop")
	must(t, "the first", first.Ping(t.Context(), nil))
	must(t, "the second", g.alone(t, "ada@shop").Ping(t.Context(), nil))
	err := g.alone(t, "ada@shop").Ping(t.Context(), nil)
	mustCode(t, "the third", err, operationFailed)
	if err != nil && !strings.Contains(err.Error(), "too many connections of user ada@shop: the limit is 2") {
		t.Errorf("the third: %v", err)
	}
	must(t, "another user", g.alone(t, "bob@shop").Ping(t.Context(), nil))
	if n := g.metric(t, `oxbow_refused_total{limit="connections.user"}`); n == "0" {
		t.Error("not counted")
	}
	_, err = command(t, first, "shop", bson.D{{Key: "logout", Value: 1}})
	must(t, "logout", err)
	must(t, "one in its place", g.alone(t, "ada@shop").Ping(t.Context(), nil))
	mustCode(t, "one more", g.alone(t, "ada@shop").Ping(t.Context(), nil), operationFailed)
}

// TestMessageRate sends faster than allowed: some messages are refused with MongoDB's error, a hello never is, and others are not concerned.
func TestMessageRate(t *testing.T) {
	g := serve(t, "http: 127.0.0.1:0\nlimits: {messages: {connection: 2}}\n")
	s, other := g.dial(t, "127.0.0.1"), g.dial(t, "127.0.0.1")
	var refused bson.M
	for n := 0; refused == nil; n++ {
		if a := s.ask("ping"); a["ok"] != 1.0 {
			refused = a
		}
		if n == 1 && refused != nil {
			t.Error("refused before as many as allowed had come")
		}
	}
	labels := fmt.Sprint(refused["errorLabels"])
	if refused["code"] != int32(rateLimitExceeded) || refused["codeName"] != "IngressRequestRateLimitExceeded" || labels != "[SystemOverloadedError RetryableError]" ||
		!strings.Contains(refused["errmsg"].(string), "this connection may send 2 messages a second") {
		t.Errorf("refused with %v", refused)
	}
	for range 10 {
		if a := s.ask("hello"); a["ok"] != 1.0 {
			t.Fatalf("a hello: %v", a)
		}
	}
	if a := other.ask("ping"); a["ok"] != 1.0 {
		t.Errorf("another connection: %v", a)
	}
	for s.ask("ping")["ok"] != 1.0 { // until a second is over
	}
	if g.metric(t, `oxbow_refused_total{limit="messages.connection"}`) == "0" || g.metric(t, `oxbow_refused_total{limit="messages.user"}`) != "0" {
		t.Error("counted wrongly")
	}
}

// TestMessageRateOfAUser: what two connections of a user send adds up.
func TestMessageRateOfAUser(t *testing.T) {
	one := auth.Mechanisms()[:1]
	g := serve(t, "http: 127.0.0.1:0\nlimits: {messages: {user: 2}}\nusers:\n"+entry(t, "ada@shop", one, "read")+entry(t, "bob@shop", one, "read"))
	a, b, bob := g.alone(t, "ada@shop"), g.alone(t, "ada@shop"), g.alone(t, "bob@shop")
	var err error
	for n := 0; err == nil; n++ {
		if err = a.Ping(t.Context(), nil); err == nil {
			err = b.Ping(t.Context(), nil)
		}
	}
	mustCode(t, "too many of two connections", err, rateLimitExceeded)
	must(t, "another user", bob.Ping(t.Context(), nil))
	if g.metric(t, `oxbow_refused_total{limit="messages.user"}`) == "0" {
		t.Error("not counted")
	}
}

// TestLoginLimit: a connection that neither logs in nor says hello is closed, whatever else it says; one that is logged in and one that says hello, as
// a driver's monitor does, are not.
func TestLoginLimit(t *testing.T) {
	g := serve(t, "http: 127.0.0.1:0\nlimits: {login: 6s}\nusers:\n"+entry(t, "ada@shop", auth.Mechanisms()[:1], "read"))
	ada := g.alone(t, "ada@shop")
	must(t, "log in", ada.Ping(t.Context(), nil))
	monitor, silent, pinging, slow := g.dial(t, "127.0.0.1"), g.dial(t, "127.0.0.1"), g.dial(t, "127.0.0.1"), g.dial(t, "127.0.0.1")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				if a, err := monitor.try(bson.D{{Key: "hello", Value: 1}}); err != nil || a["ok"] != 1.0 {
					t.Errorf("a monitor: %v, %v", a, err)
					return
				}
			}
		}
	}()
	_, err := slow.Write([]byte{100, 0, 0, 0})
	must(t, "write the beginning of a message", err)
	silent.mustEnd("one that is silent")
	slow.mustEnd("one in the middle of a message")
	for {
		if _, err := pinging.try(bson.D{{Key: "ping", Value: 1}}); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	<-stopped
	must(t, "the one that is logged in", ada.Ping(t.Context(), nil))
	g.mustHaveRefused(t, "login", "2")
}

// TestLimitsReload: other limits hold at once, and open connections stay.
func TestLimitsReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "oxbow.yaml")
	write := func(limits string) {
		text := fmt.Sprintf("backends: {local: {embedded: %s}}\nlimits: %s\n", filepath.Join(dir, "data"), limits)
		must(t, "write the configuration", os.WriteFile(file, []byte(text), 0o600))
	}
	write("{connections: {total: 1}}")
	opened, err := oxbow.Open(t.Context(), oxbow.Options{File: file, Listen: "127.0.0.1:0"})
	must(t, "open", err)
	g := &gateway{Gateway: opened}
	defer g.close(t)
	first := g.dial(t, "127.0.0.1")
	first.ask("ping")
	if a := g.dial(t, "127.0.0.1").ask("ping"); a["code"] != int32(operationFailed) {
		t.Errorf("a second one: %v", a)
	}
	write("{connections: {total: 2}}")
	must(t, "reload", g.Reload(t.Context()))
	second := g.dial(t, "127.0.0.1")
	if a := second.ask("ping"); a["ok"] != 1.0 {
		t.Errorf("a second one after a reload: %v", a)
	}
	write("{connections: {total: 1}}")
	must(t, "reload", g.Reload(t.Context()))
	if a := second.ask("ping"); a["ok"] != 1.0 {
		t.Errorf("an open one after a reload: %v", a)
	}
}
