package remote

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/catalog"
	"oxbow/internal/command"
	"oxbow/internal/config"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/server"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// serve puts an embedded backend behind Oxbow's own server, which answers handshakes as a router does, and returns the URI. handle says what
// becomes of the other commands, options what it tells of itself.
func serve(t *testing.T, handle func(*command.Table, *command.Deps, backend.Backend), options ...func(*command.Deps)) string {
	t.Helper()
	store := embedded.Store{Dir: "db", FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20}
	e, err := embedded.Open(embedded.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	deps := command.Deps{
		Log:      slog.New(slog.DiscardHandler),
		Now:      time.Now,
		Sessions: cursor.NewSessions(cursor.SessionTimeout),
		Cursors:  cursor.NewRegistry(cursor.IdleTimeout, nil),
		Counters: &command.Counters{},
		Server:   command.ServerInfo{Version: "7.0.14", Host: "localhost", Address: listener.Addr().String(), Started: time.Now()},
		Fallback: func(ctx context.Context, req *command.Request, reply *command.Reply) (err error) {
			reply.Document, err = e.Run(ctx, &backend.Request{Body: req.Body, Sequences: req.Sequences})
			return err
		},
	}
	for _, o := range options {
		o(&deps)
	}
	table := command.New(deps)
	handle(table, &deps, e)
	s := server.New(listener, table, deps.Counters, deps.Log, server.Options{})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return "mongodb://" + listener.Addr().String() + "/"
}

// asTheyCame hands every command to the backend.
func asTheyCame(*command.Table, *command.Deps, backend.Backend) {}

// throughGateway has the gateway plan and run them, on collections that have no layout.
func throughGateway(t *testing.T) func(*command.Table, *command.Deps, backend.Backend) {
	return func(table *command.Table, deps *command.Deps, e backend.Backend) {
		backends := map[string]backend.Backend{"local": e}
		live, err := catalog.Open(context.Background(), catalog.Options{Config: config.Default(), Backends: backends, Log: deps.Log, Now: deps.Now})
		if err != nil {
			t.Fatal(err)
		}
		table.RegisterData(&command.Data{Catalog: live, Exec: &exec.Executor{Backends: backends}, Cursors: deps.Cursors, Now: deps.Now})
	}
}

// connect opens a remote backend that is closed with the test.
func connect(t *testing.T, uri string) *Backend {
	t.Helper()
	b, err := Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestContract(t *testing.T) {
	uri := serve(t, asTheyCame)
	backendtest.Run(t, func(t *testing.T) backend.Backend { return connect(t, uri) })
}

func TestContractCompressed(t *testing.T) {
	uri := serve(t, asTheyCame) + "?compressors=zstd"
	backendtest.Run(t, func(t *testing.T) backend.Backend { return connect(t, uri) })
}

// TestContractThroughGateway: on plain collections the gateway keeps a backend's contract.
func TestContractThroughGateway(t *testing.T) {
	uri := serve(t, throughGateway(t))
	backendtest.Run(t, func(t *testing.T) backend.Backend { return connect(t, uri) })
}
