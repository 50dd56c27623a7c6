package throttle_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"oxbow"
	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/backend/remote"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/throttle"
)

// patience is how long a test waits for something that takes a second or so.
const patience = time.Minute

// wantPaced has a job go through a throttle, and compares the probes that see nothing.
func wantPaced(t *testing.T, d *deployment.Deployment, want []string) {
	t.Helper()
	th := throttle.Of(throttle.On{Deployment: d, Canary: backend.Namespace{Database: "jobs", Collection: "canary"}})
	run(t, th)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := th.Pace(maintain.Limits{Documents: 1e6}).Wait(ctx, 1, 0); err != nil {
		t.Fatalf("the job never went: %v, %v", err, th.Verdict())
	}
	absent := map[string]string{}
	for _, f := range th.Findings() {
		if f.Absent != "" {
			absent[f.Probe] = f.Absent
		}
	}
	if got := slices.Sorted(maps.Keys(absent)); !slices.Equal(got, want) {
		t.Errorf("absent are %v, not %v", absent, want)
	}
}

// TestEmbeddedEngine: no replica set, nothing of WiredTiger's, but a disk.
func TestEmbeddedEngine(t *testing.T) {
	b, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := deployment.Of("local", b)
	defer d.Close()
	wantPaced(t, d, []string{throttle.CPU, throttle.Dirty, throttle.Lag, throttle.Latency, throttle.Majority, throttle.Oplog, throttle.Primary, throttle.Queue, throttle.Tickets, throttle.Used})
}

// TestAnotherOxbow asks a gateway as it is asked from a command line.
func TestAnotherOxbow(t *testing.T) {
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: []byte("backends: {local: {embedded: " + t.TempDir() + "}}")})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	b, err := remote.Open(g.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := deployment.Of("other", b)
	defer d.Close()
	members, err := d.Members(t.Context())
	if err != nil || len(members) != 1 || members[0].State != deployment.Router || members[0].Host != g.Addr().String() || members[0].Why != "" {
		t.Errorf("%+v, %v", members, err)
	}
	on, err := d.On(t.Context(), members[0].Host)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := on.Run(t.Context(), &backend.Request{Body: backend.Command("admin", func(dst []byte) []byte { return append(dst, "\x10ping\x00\x01\x00\x00\x00"...) })}); err != nil || backend.Check(reply) != nil {
		t.Errorf("%s, %v", reply, err)
	}
	wantPaced(t, d, []string{throttle.Dirty, throttle.Lag, throttle.Latency, throttle.Majority, throttle.Oplog, throttle.Primary, throttle.Queue, throttle.Tickets, throttle.Used})
}
