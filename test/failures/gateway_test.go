package failures

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
)

// database holds the test's own collections; everything else in a deployment is the gateways' catalog.
const database = "d"

// uri is a set's connection string for a gateway: everything that is waited for is short, and the pool is of the set's choice.
func (s *set) uri(app string) string {
	var hosts []string
	for _, m := range s.members {
		hosts = append(hosts, m.address)
	}
	return fmt.Sprintf("mongodb://%s/?replicaSet=%s&appName=%s&serverSelectionTimeoutMS=5000&connectTimeoutMS=2000&heartbeatFrequencyMS=500&maxPoolSize=%d",
		strings.Join(hosts, ","), s.name, app, s.pool)
}

// configuration is a gateway's over one set or two: d.plain has no layout, the others have one.
func configuration(app string, sets []*set, more string) string {
	var b strings.Builder
	b.WriteString(more)
	b.WriteString("backends:\n")
	over := sets[0].name
	for i, s := range sets {
		fmt.Fprintf(&b, "  %s: {uri: %q}\n", s.name, s.uri(app))
		if i > 0 {
			over += ", " + s.name
		}
	}
	fmt.Fprintf(&b, "databases: {\"*\": %s}\ncollections:\n", sets[0].name)
	fmt.Fprintf(&b, "  d.time: {time: {field: t, unit: s, every: hour}, over: [%s]}\n", over)
	fmt.Fprintf(&b, "  d.hash: {hash: {field: k, count: 4}, over: [%s]}\n", over)
	fmt.Fprintf(&b, "  d.both: {time: {field: t, unit: s, every: hour}, hash: {field: k, count: 2}, over: [%s]}\n", over)
	return b.String()
}

// gateway is one gateway behind a relay, so that its clients find it at one address when it has been started again, and so that it can be cut off at
// once and altogether.
type gateway struct {
	name  string
	sets  []*set
	relay *relay
	more  string // of its configuration

	starts int
	app    string
	open   *oxbow.Gateway // nil: it has not started yet
}

func newGateway(t testing.TB, name string, sets []*set, more ...string) *gateway {
	t.Helper()
	g := &gateway{name: name, sets: sets, relay: newRelay(t), more: strings.Join(more, "")}
	if err := g.start(t.Context()); err != nil {
		t.Fatalf("open gateway %s: %v", name, err)
	}
	return g
}

// start opens it under a new application name.
func (g *gateway) start(ctx context.Context) error {
	g.starts++
	g.app = fmt.Sprintf("%s.%d", g.name, g.starts)
	opened, err := oxbow.Open(ctx, oxbow.Options{Listen: "127.0.0.1:0", Config: []byte(configuration(g.app, g.sets, g.more)), UpkeepEvery: time.Hour})
	if err != nil {
		return err
	}
	g.open = opened
	g.relay.point(opened.Addr().String())
	return nil
}

// kill is as much of a kill as a process can have that goes on: from one moment on nothing from it reaches a client or a deployment.
func (g *gateway) kill() {
	g.relay.point("")
	for _, s := range g.sets {
		s.sever(g.app, true)
	}
	g.close()
}

// close gives its resources back without waiting for commands.
func (g *gateway) close() {
	if g.open == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	g.open.Close(now) // an error says that commands were interrupted, which is what is wanted
	g.open = nil
}

// relay copies bytes between clients and a gateway.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	to       string // "": connections are refused
	conns    map[net.Conn]bool
}

func newRelay(t testing.TB) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		r.point("")
	})
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(nc)
		}
	}()
	return r
}

// point breaks all connections and leads those to come elsewhere.
func (r *relay) point(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	for nc := range r.conns {
		nc.Close()
	}
}

// keep puts a connection on the list of those that break when the relay is pointed elsewhere, unless it was already.
func (r *relay) keep(nc net.Conn, to string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to != r.to || to == "" {
		return false
	}
	r.conns[nc] = true
	return true
}

func (r *relay) serve(nc net.Conn) {
	defer nc.Close()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if to == "" {
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	if !r.keep(nc, to) || !r.keep(out, to) {
		return
	}
	defer func() {
		r.mu.Lock()
		delete(r.conns, nc)
		delete(r.conns, out)
		r.mu.Unlock()
	}()
	go func() {
		io.Copy(out, nc) // ends with either connection
		out.Close()
		nc.Close()
	}()
	io.Copy(nc, out)
}

// connect makes a client of gateways: majorities, short times, and failed reads and writes sent again or not.
func connect(t testing.TB, retries bool, gateways ...*gateway) *mongo.Client {
	t.Helper()
	var hosts []string
	for _, g := range gateways {
		hosts = append(hosts, g.relay.listener.Addr().String())
	}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + strings.Join(hosts, ",") +
		"/?w=majority&readConcernLevel=majority&serverSelectionTimeoutMS=3000&connectTimeoutMS=1000&heartbeatFrequencyMS=500").
		SetRetryWrites(retries).SetRetryReads(retries))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
