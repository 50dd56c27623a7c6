package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
	"oxbow/internal/auth"
)

// password is everybody's.
const password = "tide and ebb"

// codes of MongoDB.
const (
	unauthorized         = 13
	authenticationFailed = 18
	userNotFound         = 11
	duplicateField       = 40413
)

// gateway is a gateway and its log.
type gateway struct {
	*oxbow.Gateway
	log *log
}

// log collects what a gateway writes at every level.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// entry is a user's entry in the configuration.
func entry(t *testing.T, user string, mechanisms []auth.Mechanism, roles ...string) string {
	t.Helper()
	name, _, _ := strings.Cut(user, "@")
	text := fmt.Sprintf("  %q:\n    roles: [%s]\n", user, strings.Join(roles, ", "))
	for _, m := range mechanisms {
		c, err := auth.NewCredential(m, name, password)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("    %s: %q\n", strings.ToLower(string(m)), c.String())
	}
	return text
}

func open(t *testing.T, dir, configuration string) *gateway {
	t.Helper()
	l := &log{}
	text := fmt.Sprintf("backends:\n  local: {embedded: %s}\n%s", dir, configuration)
	g, err := oxbow.Open(t.Context(), oxbow.Options{
		Config: []byte(text), Listen: "127.0.0.1:0", Log: slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}),
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &gateway{g, l}
}

// serve opens a gateway that is closed when the test ends.
func serve(t *testing.T, configuration string) *gateway {
	t.Helper()
	g := open(t, t.TempDir(), configuration)
	t.Cleanup(func() { g.close(t) })
	return g
}

func (g *gateway) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// connect returns a client; o says who it is.
func (g *gateway) connect(t *testing.T, o *options.ClientOptions) *mongo.Client {
	t.Helper()
	o.ApplyURI(g.URI()).SetServerSelectionTimeout(10 * time.Second).SetServerMonitoringMode(options.ServerMonitoringModePoll)
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Disconnect(context.Background()); err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
			t.Errorf("disconnect: %v", err)
		}
	})
	return c
}

// as returns a client that logs in as "name@database"; "" stands for nobody.
func (g *gateway) as(t *testing.T, user string) *mongo.Client {
	t.Helper()
	return g.connect(t, credential(options.Client(), user, "", password))
}

// credential says who a client is. Options are applied in order, so a connection string may follow.
func credential(o *options.ClientOptions, user, mechanism, password string) *options.ClientOptions {
	if user == "" {
		return o
	}
	name, database, _ := strings.Cut(user, "@")
	return o.SetAuth(options.Credential{Username: name, Password: password, AuthSource: database, AuthMechanism: mechanism})
}

func command(t *testing.T, c *mongo.Client, database string, cmd any) (bson.M, error) {
	t.Helper()
	var reply bson.M
	err := c.Database(database).RunCommand(t.Context(), cmd).Decode(&reply)
	return reply, err
}

// codeOf returns an error's code, 0 for none.
func codeOf(err error) int {
	var e mongo.ServerError
	if errors.As(err, &e) && len(e.ErrorCodes()) > 0 {
		return e.ErrorCodes()[0]
	}
	return 0
}

func mustCode(t *testing.T, what string, err error, want int) {
	t.Helper()
	if err == nil || codeOf(err) != want {
		t.Errorf("%s gives %v, not code %d", what, err, want)
	}
}

// must ends the test on an error that is none of the expected ones.
func must(t *testing.T, what string, err error, expected ...error) {
	t.Helper()
	if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		t.Fatalf("%s: %v", what, err)
	}
}
