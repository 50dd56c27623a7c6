package access

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
	"oxbow/internal/auth"
)

// backendPassword needs escaping, so that it could show in two ways.
const backendPassword = "s3cr3t/and:more@#1"

// shows reports whether a text has the backend's password, in any form or part.
func shows(text string) bool {
	return strings.Contains(text, "s3cr3t") || strings.Contains(text, "and:more") || strings.Contains(text, url.QueryEscape("and:more"))
}

// behind is the configuration of a gateway before a server at a URI.
func behind(uri string) string {
	return fmt.Sprintf("http: 127.0.0.1:0\nslow: 1ms\ncatalog: gateway\nbackends:\n  second: {uri: %q}\ncollections:\n  d.split: {hash: {field: k, count: 4}}\n", uri)
}

// uriTo is a connection string with a user and a password.
func uriTo(address, password, more string) string {
	return "mongodb://" + url.UserPassword("boss", password).String() + "@" + address + "/?authSource=admin&serverSelectionTimeoutMS=5000" + more
}

// TestBackendCredentials: the password of a backend's URI is in nothing that comes out of a gateway, whether it is right or wrong, whether the server is
// there or not.
func TestBackendCredentials(t *testing.T) {
	credential, err := auth.NewCredential(auth.SHA256, "boss", backendPassword)
	if err != nil {
		t.Fatal(err)
	}
	second := serve(t, fmt.Sprintf("catalog: second\nusers:\n  boss@admin: {roles: [root], scram-sha-256: %q}\n", credential.String()))
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, uri := range map[string]string{
		"wrong password":    uriTo(second.Addr().String(), backendPassword+"2", ""),
		"nobody listens":    uriTo(gone.Addr().String(), backendPassword, ""),
		"unknown mechanism": uriTo(second.Addr().String(), backendPassword, "&authMechanism=NONE"),
		"unknown mode":      uriTo(second.Addr().String(), backendPassword, "&readPreference=never"),
		"bad timeout":       uriTo(second.Addr().String(), backendPassword, "&waitQueueTimeoutMS=soon"),
		"not escaped":       "mongodb://boss:" + backendPassword + "@" + second.Addr().String() + "/",
		"bad escape":        "mongodb://boss:s3cr3t%zz@" + second.Addr().String() + "/",
		"no host":           "mongodb://boss:s3cr3t@/",
		"bad port":          "mongodb://boss:s3cr3t@localhost:s3cr3t/",
		"bad scheme":        "mongo://boss:s3cr3t@localhost/",
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{}
			g, err := oxbow.Open(t.Context(), oxbow.Options{
				Config: []byte(behind(uri)), Listen: "127.0.0.1:0", Log: slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}),
			})
			if err == nil {
				g.Close(context.Background())
				t.Fatal("the backend is taken")
			}
			if shows(err.Error()) || shows(l.String()) {
				t.Errorf("the password shows: %v\n%s", err, l)
			}
		})
	}
	t.Run("right password", func(t *testing.T) { lookAround(t, uriTo(second.Addr().String(), backendPassword, "")) })
}

// lookAround asks a gateway for all that it tells about itself.
func lookAround(t *testing.T, uri string) {
	l := &log{}
	opened, err := oxbow.Open(t.Context(), oxbow.Options{
		Config: []byte(behind(uri)), Listen: "127.0.0.1:0", Log: slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}),
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{opened, l}
	defer g.close(t)
	client := g.connect(t, options.Client())
	for _, cmd := range []bson.D{
		{{Key: "insert", Value: "split"}, {Key: "documents", Value: bson.A{bson.D{{Key: "k", Value: 1}}, bson.D{{Key: "k", Value: 2}}}}},
		{{Key: "find", Value: "split"}, {Key: "sort", Value: bson.D{{Key: "k", Value: 1}}}},
		{{Key: "find", Value: "split"}, {Key: "hint", Value: "none"}, {Key: "maxTimeMS", Value: 1000}},
		{{Key: "serverStatus", Value: 1}},
		{{Key: "getLog", Value: "global"}},
		{{Key: "getCmdLineOpts", Value: 1}},
		{{Key: "getParameter", Value: "*"}},
		{{Key: "currentOp", Value: 1}, {Key: "$all", Value: true}},
		{{Key: "listShards", Value: 1}},
		{{Key: "connPoolStats", Value: 1}},
		{{Key: "hello", Value: 1}},
		{{Key: "explain", Value: bson.D{{Key: "find", Value: "split"}}}},
	} {
		for _, database := range []string{"d", "admin"} {
			reply, err := client.Database(database).RunCommand(t.Context(), cmd).Raw()
			if text := fmt.Sprint(reply, err); shows(text) {
				t.Errorf("%s shows the password: %s", cmd[0].Key, text)
			}
		}
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		if text := page(t, g, path); shows(text) {
			t.Errorf("%s shows the password: %s", path, text)
		} else if path == "/metrics" && !strings.Contains(text, `oxbow_backend_circuit{backend="second",state="closed"} 1`) {
			t.Errorf("the metrics have no circuit:\n%s", text)
		}
	}
	if text := l.String(); shows(text) || text == "" {
		t.Errorf("the log shows the password, or nothing: %s", text)
	}
}

func page(t *testing.T, g *gateway, path string) string {
	t.Helper()
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Get("http://" + g.HTTPAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
