package badinput

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
)

// collections are the layouts that the tests write to: at is a date, s whole seconds, h a hashed field.
const collections = `collections:
  d.bydate:    {time: {field: at, every: day}}
  d.byseconds: {time: {field: at, unit: s, every: day}}
  d.byhash:    {hash: {field: h, count: 4}}
  d.byboth:
    time: {field: at, every: day}
    hash: {field: h, count: 4}
`

// configure writes a configuration with one embedded backend into a folder and returns the file.
func configure(t *testing.T, dir, collections string) string {
	t.Helper()
	file := filepath.Join(dir, "oxbow.yaml")
	text := "backends: {local: {embedded: " + filepath.Join(dir, "data") + "}}\n" + collections
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// open opens a gateway that is closed with the test.
func open(t *testing.T, file string) *oxbow.Gateway {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{File: file, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shut(g); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

func shut(g *oxbow.Gateway) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return g.Close(ctx)
}

// connect connects the Go driver, without retries: a test is about the first answer.
func connect(t *testing.T, g *oxbow.Gateway) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(g.URI()).SetRetryWrites(false).SetRetryReads(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disconnect(c) })
	return c
}

// disconnect ends a client, which may have ended before. It comes before the gateway's end: a client looks for a server to end its sessions on.
func disconnect(c *mongo.Client) { c.Disconnect(context.Background()) }

// serve opens a gateway with the collections and connects to it.
func serve(t *testing.T) *mongo.Client {
	t.Helper()
	return connect(t, open(t, configure(t, t.TempDir(), collections)))
}

// codeOf is the code of a server's error; 0 for none, -1 for an error of another kind.
func codeOf(err error) int {
	var e mongo.ServerError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e) && len(e.ErrorCodes()) > 0:
		return e.ErrorCodes()[0]
	}
	return -1
}

func at(day int) time.Time { return time.Date(2024, 5, day, 12, 0, 0, 0, time.UTC) }

// ids are the _ids that a collection holds, in order.
func ids(t *testing.T, c *mongo.Collection) []int32 {
	t.Helper()
	cursor, err := c.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.M{"_id": 1}))
	if err != nil {
		t.Fatal(err)
	}
	var docs []struct {
		ID int32 `bson:"_id"`
	}
	if err := cursor.All(t.Context(), &docs); err != nil {
		t.Fatal(err)
	}
	var out []int32
	for _, d := range docs {
		out = append(out, d.ID)
	}
	return out
}

// stored inserts documents that must be taken.
func stored(t *testing.T, c *mongo.Collection, docs ...any) {
	t.Helper()
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}
