package oxbow_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
)

// TestURI: a driver reaches a gateway by its URI, on a port and on a Unix socket.
func TestURI(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", filepath.Join(t.TempDir(), "oxbow.sock")} {
		g, err := oxbow.Open(t.Context(), oxbow.Options{Config: fmt.Appendf(nil, "listen: %s\nbackends: {local: {embedded: %s}}\n", listen, t.TempDir())})
		if err != nil {
			t.Fatal(err)
		}
		client, err := mongo.Connect(options.Client().ApplyURI(g.URI()))
		if err != nil {
			t.Fatalf("%s: %v", g.URI(), err)
		}
		if err := client.Ping(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", g.URI(), err)
		}
		if err := client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
