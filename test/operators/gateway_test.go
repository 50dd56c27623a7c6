package operators

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
)

// lines collects what a gateway logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open opens a gateway with an embedded backend, and more of a configuration.
func open(t *testing.T, more string) (*oxbow.Gateway, *lines) {
	t.Helper()
	return openOn(t, fmt.Sprintf("{local: {embedded: %q}}", t.TempDir()), more)
}

// openOn opens a gateway with these backends.
func openOn(t *testing.T, backends, more string) (*oxbow.Gateway, *lines) {
	t.Helper()
	l := &lines{}
	text := fmt.Sprintf("backends: %s\n%s", backends, more)
	g, err := oxbow.Open(t.Context(), oxbow.Options{Config: []byte(text), Listen: "127.0.0.1:0", Log: slog.NewTextHandler(l, nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close the gateway: %v", err)
		}
	})
	return g, l
}

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetAppName("test").SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	return client
}

// fill inserts n documents {_id, uid, flag, day}.
func fill(t *testing.T, c *mongo.Collection, n int) {
	t.Helper()
	const batch = 10_000
	for from := 0; from < n; from += batch {
		docs := make([]any, 0, min(batch, n-from))
		for i := from; i < min(n, from+batch); i++ {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "uid", Value: i % 97}, {Key: "flag", Value: i % 2}, {Key: "text", Value: "forty bytes of what somebody once wrote"}})
		}
		if _, err := c.InsertMany(t.Context(), docs, options.InsertMany().SetOrdered(false)); err != nil {
			t.Fatal(err)
		}
	}
}
