// Package ferret runs Oxbow in front of a server that nobody here wrote: FerretDB with SQLite, in this process. It is a module of its own,
// since FerretDB pins old dependencies, which the product is not to build with.
//
// It is a test only: nothing imports it.
package ferret

import (
	"context"
	"log/slog"
	"testing"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// Serve starts a FerretDB whose data goes with the test and returns its connection string.
func Serve(t testing.TB) string {
	t.Helper()
	f, err := ferretdb.New(&ferretdb.Config{
		Logger:    slog.New(slog.DiscardHandler),
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: "file:" + t.TempDir() + "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return f.MongoDBURI()
}
