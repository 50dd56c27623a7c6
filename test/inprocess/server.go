package inprocess

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/server"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Serve puts an embedded backend in memory behind a socket, as a server that knows no layouts and no catalog, and returns its connection string. It
// is closed with the test.
func Serve(t testing.TB) string {
	t.Helper()
	e, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "served", FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	log, counters := slog.New(slog.DiscardHandler), &command.Counters{}
	table := command.New(command.Deps{
		Log: log, Now: time.Now, Counters: counters,
		Sessions: cursor.NewSessions(cursor.SessionTimeout), Cursors: cursor.NewRegistry(cursor.IdleTimeout, nil),
		Server: command.ServerInfo{Version: "7.0.14", Host: "localhost", Address: listener.Addr().String(), Started: time.Now()},
		Fallback: func(ctx context.Context, req *command.Request, reply *command.Reply) (err error) {
			reply.Document, err = e.Run(ctx, &backend.Request{Body: req.Body, Sequences: req.Sequences})
			return err
		},
	})
	s := server.New(listener, table, counters, log, server.Options{})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return "mongodb://" + listener.Addr().String()
}
