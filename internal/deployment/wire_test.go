package deployment_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oxbow"
	"oxbow/internal/auth"
	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/deployment"
	"oxbow/internal/deployment/scripted"
	"oxbow/internal/mongoerr"
)

// open opens a deployment by its URI.
func open(t *testing.T, uri string) *deployment.Deployment {
	t.Helper()
	b, err := remote.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	d := deployment.Of("deployment", b)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestMembersByURI reaches the members of a set over its connections, one that is hidden, and one that is away.
func TestMembersByURI(t *testing.T) {
	set := newSet()
	d := open(t, scripted.Serve(t, set))
	host := func(i int) string { return set.Members[i].Host }
	wantMembers(t, d, host(0)+" primary votes:1\n"+host(1)+" secondary votes:1 map[use:reports]\n"+host(2)+" secondary votes:0 hidden delay:1h0m0s\n"+host(3)+" arbiter votes:1\n")
	// A question to a member is answered by it, also where it is a secondary.
	on, err := d.On(t.Context(), host(2))
	if err != nil {
		t.Fatal(err)
	}
	hello, err := backend.Ask(t.Context(), on, bsontest.Doc(t, `{"hello": 1, "$db": "admin"}`))
	if err != nil {
		t.Fatal(err)
	}
	if me, _ := bson.Get(hello, "me"); me.StringValue() != host(2) {
		t.Errorf("%s answered for %s", me, host(2))
	}
	if _, err := backend.Ask(t.Context(), on, bsontest.Doc(t, `{"find": "c", "$db": "d"}`)); !mongoerr.Is(err, mongoerr.CommandNotFound) {
		t.Errorf("a read of a secondary: %v", err) // the script has no data: it got so far
	}
	set.Change(func() { set.Members[1].Down = true })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	members, err := d.Members(ctx)
	if err != nil || members[1].State != deployment.Unreachable || members[1].Why == "" || members[0].State != deployment.Primary {
		t.Errorf("%s, %v", shown(members), err)
	}
}

// refusals counts the logins that a server refused, by its log.
type refusals struct{ atomic.Int64 }

func (r *refusals) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("authentication failed")) {
		r.Add(1)
	}
	return len(line), nil
}

// TestLogins asks a server for which a login is needed: with the right one, and with a wrong one, of which nothing is in the error.
func TestLogins(t *testing.T) {
	credential, err := auth.NewCredential(auth.SHA256, "ops", "s3cr3t-pass")
	if err != nil {
		t.Fatal(err)
	}
	var refusals refusals
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: fmt.Appendf(nil,
		"backends: {local: {embedded: %s}}\nusers:\n  ops@admin: {scram-sha-256: %q, roles: [root]}\n", t.TempDir(), credential.String()),
		Log: slog.NewTextHandler(&refusals, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	address := g.Addr().String()
	ping := bsontest.Doc(t, `{"listDatabases": 1, "$db": "admin"}`)

	good := open(t, "mongodb://ops:s3cr3t-pass@"+address)
	on, err := good.On(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Ask(t.Context(), on, ping); err != nil {
		t.Error(err)
	}

	bad := open(t, "mongodb://ops:wr0ng-pass@"+address)
	on, err = bad.On(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is not even tried
		_, err = backend.Ask(t.Context(), on, ping)
		if !mongoerr.Is(err, mongoerr.AuthenticationFailed) || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("a wrong password: %v", err)
		}
	}
	if n := refusals.Load(); n != 1 {
		t.Errorf("a wrong password was tried %d times", n)
	}
	if _, err := backend.Ask(t.Context(), on, bsontest.Doc(t, `{"hello": 1, "$db": "admin"}`)); err != nil {
		t.Errorf("hello needs no login: %v", err)
	}
}
