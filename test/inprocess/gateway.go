// Package inprocess is a gateway without its sockets: the command table over its backends, of which the embedded ones live in memory. Tests that
// send very many commands use it, since it is much faster than a driver over a socket.
//
// It is imported by tests only.
package inprocess

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/command"
	"oxbow/internal/config"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/route"
)

// Gateway answers commands as a gateway does to one connection. It is a backend.Backend of logical collections.
type Gateway struct {
	table  *command.Table
	conn   *command.Conn
	closed atomic.Bool
}

var _ backend.Backend = (*Gateway)(nil)

// Open opens a gateway for the text of a configuration; the folders of embedded backends are names in memory. It is closed with the test.
func Open(t testing.TB, text string) *Gateway {
	t.Helper()
	cfg, err := config.Parse("configuration", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	backends := map[string]backend.Backend{}
	for _, b := range cfg.Backends {
		backends[b.Name] = openBackend(t, b)
	}
	log := slog.New(slog.DiscardHandler)
	c, err := catalog.Open(t.Context(), catalog.Options{Config: cfg, Backends: backends, Log: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	keep, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		c.Keep(keep)
	}()
	t.Cleanup(func() {
		stop()
		<-kept
	})
	g := &Gateway{conn: &command.Conn{ID: 1}}
	cursors := cursor.NewRegistry(cursor.IdleTimeout, nil)
	g.table = command.New(command.Deps{
		Log: log, Now: time.Now, Counters: &command.Counters{}, Cursors: cursors, Sessions: cursor.NewSessions(cursor.SessionTimeout),
		Server: command.ServerInfo{Version: "7.0.14", Started: time.Now()},
	})
	g.table.RegisterData(&command.Data{
		Catalog: c, Cursors: cursors, Now: time.Now, Upkeep: idle{},
		Exec: &exec.Executor{Backends: backends, Gone: func(t plan.Target) bool {
			_, p := c.Snapshot().Physical(t.Backend, t.Namespace.Database, t.Namespace.Collection)
			return p == nil || p.State == route.Dropping
		}},
	})
	return g
}

// openBackend opens a backend, an embedded one in memory.
func openBackend(t testing.TB, c config.Backend) backend.Backend {
	t.Helper()
	var b backend.Backend
	var err error
	if c.Embedded != nil {
		store := embedded.Store{Dir: c.Embedded.Dir, FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20}
		b, err = embedded.Open(embedded.Options{Store: store})
	} else {
		b, err = remote.Open(c.URI)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// idle is an upkeep that never runs, so that nothing but a test's own commands changes partitions.
type idle struct{}

func (idle) Stopped(string) string                { return "" }
func (idle) Confirm(string) string                { return "" }
func (idle) History(string) []command.UpkeepEvent { return nil }

// Run answers one command.
func (g *Gateway) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if g.closed.Load() {
		return nil, backend.ErrUnavailable
	}
	var reply command.Reply
	g.table.Run(ctx, &command.Request{Body: req.Body, Sequences: req.Sequences, Conn: g.conn}, &reply)
	if reply.Document != nil {
		return reply.Document, nil
	}
	return reply.Elements, nil
}

// Code runs a command, written as Extended JSON without its $db, on a database, and returns the error's code and message; 0 and "" if there is none.
func (g *Gateway) Code(t testing.TB, db, command string) (mongoerr.Code, string) {
	t.Helper()
	var body driver.D
	if err := driver.UnmarshalExtJSON([]byte(command), false, &body); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	raw, err := driver.Marshal(append(body, driver.E{Key: "$db", Value: db}))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := g.Run(t.Context(), &backend.Request{Body: raw})
	if err != nil {
		t.Fatal(err)
	}
	code, _ := bson.Get(reply, "code")
	n, _ := code.AsInt64OK()
	message, _ := bson.Get(reply, "errmsg")
	text, _ := message.StringValueOK()
	return mongoerr.Code(n), text
}

// Abilities are those of a server.
func (g *Gateway) Abilities() backend.Abilities { return backend.Abilities{} }

// Close makes every later command fail.
func (g *Gateway) Close() error {
	g.closed.Store(true)
	return nil
}
