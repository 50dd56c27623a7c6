package remote

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/server"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// serve puts an embedded backend behind Oxbow's own server, which answers handshakes as a router does and hands everything else
// to the backend as it came, and returns the URI.
func serve(t *testing.T) string {
	t.Helper()
	store := embedded.Store{Dir: "db", FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20}
	e, err := embedded.Open(embedded.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counters, log := &command.Counters{}, slog.New(slog.DiscardHandler)
	table := command.New(command.Deps{
		Log:      log,
		Now:      time.Now,
		Sessions: cursor.NewSessions(cursor.SessionTimeout),
		Cursors:  cursor.NewRegistry(cursor.IdleTimeout),
		Counters: counters,
		Server:   command.ServerInfo{Version: "7.0.14", Host: "localhost", Address: listener.Addr().String(), Started: time.Now()},
		Fallback: func(ctx context.Context, req *command.Request, reply *command.Reply) (err error) {
			reply.Document, err = e.Run(ctx, &backend.Request{Body: req.Body, Sequences: req.Sequences})
			return err
		},
	})
	s := server.New(listener, table, counters, log, server.Options{})
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
	uri := serve(t)
	backendtest.Run(t, func(t *testing.T) backend.Backend { return connect(t, uri) })
}

func TestContractCompressed(t *testing.T) {
	uri := serve(t) + "?compressors=zstd"
	backendtest.Run(t, func(t *testing.T) backend.Backend { return connect(t, uri) })
}
