package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow"
)

// runAsOxbow makes the test's own binary run as the command; see startServe.
const runAsOxbow = "OXBOW_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsOxbow) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// openGateway opens a gateway in this process with collections as in a configuration file, and returns its URI.
func openGateway(t *testing.T, collections string) string {
	t.Helper()
	return openGatewayFile(t, writeFile(t, "oxbow.yaml", gatewayConfig(t.TempDir(), collections))).URI()
}

// gatewayConfig is a configuration with one embedded backend.
func gatewayConfig(folder, collections string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nbackends:\n  local: {embedded: %q}\n%s", folder, collections)
}

// openGatewayFile opens a gateway in this process with a configuration file.
func openGatewayFile(t *testing.T, file string) *oxbow.Gateway {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{File: file, UpkeepEvery: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close gateway: %v", err)
		}
	})
	return g
}

// database connects to a gateway.
func database(t *testing.T, uri, name string) *mongo.Database {
	t.Helper()
	client, err := connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// It would look for a server that a test has stopped.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		client.Disconnect(ctx)
	})
	return client.Database(name)
}

func count(t *testing.T, c *mongo.Collection, filter bson.D) int64 {
	t.Helper()
	n, err := c.CountDocuments(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// oxbowCommand runs the command line in this process.
func oxbowCommand(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// writeFile writes a file in a folder of the test's own and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantText checks that a text holds each of some parts.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// wantError checks that an error tells each of some parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that tells %q", parts)
		return
	}
	wantText(t, err.Error(), parts...)
}
