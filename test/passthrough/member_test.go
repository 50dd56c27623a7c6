package passthrough

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
	"oxbow/internal/server"
)

// member is a scripted deployment.
type member struct {
	uri     string
	answers map[string]func(bson.M) (bson.D, error) // by command

	stop func() // the deployment is gone

	mu   sync.Mutex
	sent []bson.M
}

// newMember serves commands that are answered by the script; others are unknown.
func newMember(t *testing.T, answers map[string]func(bson.M) (bson.D, error)) *member {
	t.Helper()
	m := &member{answers: answers}
	d := newServed(t, nil)
	table := d.table
	m.uri = d.uri
	for name := range answers {
		table.Register(name, command.Entry{Handler: m.answer, InTransactions: true})
	}
	// What a gateway asks for by itself is no part of any script.
	table.Register("listCollections", command.Entry{Handler: func(_ context.Context, req *command.Request, reply *command.Reply) (err error) {
		reply.Document, err = bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{}}, {Key: "id", Value: int64(0)},
			{Key: "ns", Value: req.Database + ".$cmd.listCollections"}}}, {Key: "ok", Value: 1.0}})
		return err
	}})
	m.stop = d.serve(t)
	t.Cleanup(m.stop)
	return m
}

// served is a server of which the commands are still to be registered.
type served struct {
	uri      string
	table    *command.Table
	listener net.Listener
	counters *command.Counters
}

// patient is how long a server is waited for, since on a busy machine some come late; shortly is for those that a test stops.
const patient, shortly = "/?serverSelectionTimeoutMS=10000", "/?serverSelectionTimeoutMS=500"

func hasty(uri string) string { return strings.TrimSuffix(uri, patient) + shortly }

func newServed(t *testing.T, fallback command.Handler) *served {
	t.Helper()
	listener, err := server.Listen("127.0.0.1:0", false)
	must(t, "listen", err)
	d := &served{uri: "mongodb://" + listener.Addr().String() + patient, listener: listener, counters: &command.Counters{}}
	d.table = command.New(command.Deps{
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Counters: d.counters, Fallback: fallback,
		Sessions: cursor.NewSessions(cursor.SessionTimeout), Cursors: cursor.NewRegistry(cursor.IdleTimeout, nil),
		Server: command.ServerInfo{Version: "7.0.14", Host: "localhost", Address: listener.Addr().String(), Started: time.Now()},
	})
	return d
}

// serve answers until the function that it returns is called; clients need not have left then.
func (d *served) serve(t *testing.T) (stop func()) {
	s := server.New(d.listener, d.table, d.counters, slog.New(slog.DiscardHandler), server.Options{})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	return sync.OnceFunc(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(now)
		must(t, "serve", <-ended)
	})
}

func (m *member) answer(_ context.Context, req *command.Request, reply *command.Reply) error {
	var got bson.M
	if err := bson.Unmarshal(req.Body, &got); err != nil {
		return err
	}
	m.mu.Lock()
	m.sent = append(m.sent, got)
	m.mu.Unlock()
	doc, err := m.answers[req.Name](got)
	if err != nil {
		return err
	}
	body, err := bson.Marshal(append(doc, bson.E{Key: "ok", Value: 1.0}))
	reply.Document = body
	return err
}

// seen tells what was sent, a line a command: its name and the fields of those asked for that it has.
func (m *member) seen(fields ...string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for _, cmd := range m.sent {
		line := ""
		for name := range m.answers {
			if _, ok := cmd[name]; ok {
				line = name
			}
		}
		for _, f := range fields {
			if v, ok := cmd[f]; ok {
				line += fmt.Sprintf(" %s:%v", f, v)
			}
		}
		lines = append(lines, line)
	}
	m.sent = nil
	return strings.Join(lines, "\n")
}

// configuration is a gateway's: databases one and two lie on the deployments of these names, the rest on the engine; laid.c has a layout on one.
func configuration(dir string, one, two *member) string {
	return fmt.Sprintf("backends:\n  local: {embedded: %s}\n  one: {uri: %q}\n  two: {uri: %q}\ndatabases: {one: one, two: two, laid: one, \"*\": local}\n"+
		"collections:\n  laid.c: {hash: {field: u, count: 2}}\n", dir, one.uri, two.uri)
}

// serve opens a gateway and returns a client of it.
func serve(t *testing.T, one, two *member) *mongo.Client {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: []byte(configuration(t.TempDir(), one, two))})
	must(t, "open", err)
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	must(t, "connect", err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must(t, "disconnect", client.Disconnect(ctx))
		must(t, "close", g.Close(ctx))
	})
	return client
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func written(bson.M) (bson.D, error) { return bson.D{{Key: "n", Value: 1}}, nil }

func nothing(bson.M) (bson.D, error) { return nil, nil }

func found(cmd bson.M) (bson.D, error) {
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "id", Value: int64(0)},
		{Key: "ns", Value: fmt.Sprintf("%v.%v", cmd["$db"], cmd["find"])}}}}, nil
}

func unknownTransaction(bson.M) (bson.D, error) {
	return nil, mongoerr.New(mongoerr.NoSuchTransaction, "there is no such transaction here")
}
