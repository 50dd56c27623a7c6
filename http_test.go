package oxbow_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
	"oxbow/internal/admin/admintest"
)

// open opens a gateway that serves HTTP, and a client of it.
func open(t *testing.T, more string) (*oxbow.Gateway, *mongo.Client) {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: fmt.Appendf(nil, "backends: {local: {embedded: %s}}\n%s", t.TempDir(), more)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g, client
}

func TestMetrics(t *testing.T) {
	g, client := open(t, "http: 127.0.0.1:0\ncollections:\n  fla.log:\n    time: {field: at, every: minute}\n    keep: 1h\n")
	log := client.Database("fla").Collection("log")
	for range 3 {
		if _, err := log.InsertOne(t.Context(), bson.D{{Key: "at", Value: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Database("fla").RunCommand(t.Context(), bson.D{{Key: "find", Value: "log"}, {Key: "filter", Value: bson.D{{Key: "$no", Value: 1}}}}).Err(); err == nil {
		t.Fatal("an unknown operator is taken")
	}
	// A name that no label can be costs the other figures nothing.
	if err := client.Database("fla").RunCommand(t.Context(), bson.D{{Key: "find", Value: "\xff"}}).Err(); err != nil {
		t.Fatal(err)
	}
	// A client that makes commands up makes no series.
	for i := range 50 {
		client.Database("fla").RunCommand(t.Context(), bson.D{{Key: fmt.Sprintf("made%dUp", i), Value: 1}})
	}
	status, text := admintest.Get(t, g.HTTPAddr(), "/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	for _, want := range []string{
		`oxbow_command_duration_seconds_count{command="insert"} 3`,
		`oxbow_command_duration_seconds_count{command="other"} 50`,
		`oxbow_command_errors_total{command="find",error="BadValue"} 1`,
		`oxbow_command_errors_total{command="other",error="CommandNotFound"} 50`,
		`oxbow_operations_total{type="insert"} 3`,
		`oxbow_collection_commands_total{collection="fla.log"} 4`,
		`oxbow_partitions{collection="fla.log",state="active"}`,
		`oxbow_oldest_partition_age_seconds{collection="fla.log"}`,
		`oxbow_memory_limit_bytes`, `oxbow_connections `, `process_resident_memory_bytes`, `go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(text, "made") {
		t.Error("a command that a client made up has a series")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := admintest.Get(t, g.HTTPAddr(), path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := admintest.Get(t, g.HTTPAddr(), "/nothing", ""); status != http.StatusNotFound {
		t.Errorf("/nothing: %d", status)
	}
}

func TestMetricsTakeTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	const token = "a token of some length"
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, _ := open(t, fmt.Sprintf("http: {listen: 127.0.0.1:0, token: %s}\n", file))
	for _, wrong := range []string{"", "a token", token + "s"} {
		if status, text := admintest.Get(t, g.HTTPAddr(), "/metrics", wrong); status != http.StatusUnauthorized || strings.Contains(text, token) {
			t.Errorf("%q: %d %s", wrong, status, text)
		}
	}
	if status, _ := admintest.Get(t, g.HTTPAddr(), "/metrics", token); status != http.StatusOK {
		t.Errorf("the token: %d", status)
	}
	if status, _ := admintest.Get(t, g.HTTPAddr(), "/healthz", ""); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: fmt.Appendf(nil, "backends: {local: {embedded: %s}}\nhttp: {listen: 127.0.0.1:0, token: %s}\n", t.TempDir(), file)})
	if err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short token gives %v", err)
	}
}
