package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend/embedded"
	"oxbow/internal/deployment/scripted"
)

// TestPurgeByAWrongClock: a machine whose clock is ahead of the deployment's would take documents that have to stay. The job is held, a trial refused, and nothing goes.
func TestPurgeByAWrongClock(t *testing.T) {
	t.Parallel()
	engine, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	set := scripted.New("rs", &scripted.Member{State: "PRIMARY", Data: engine})
	set.Ahead = -30 * 24 * time.Hour
	uri := scripted.Serve(t, set)
	c := throttledLines(t, uri, 100)
	_, _, err = oxbowCommand(t, nil, purgeArgs("plan", uri, "--trial", "1s")...)
	if err == nil || !strings.Contains(err.Error(), "the clock of this machine is 720h0m0s away from the deployment's") {
		t.Errorf("trial: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs shown
	ended := make(chan error, 1)
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(purgeArgs("run", uri, "--strategy", "ranges"))
	go func() { ended <- root.ExecuteContext(ctx) }()
	await(t, "the job is held", func() bool { return strings.Contains(errs.since(0), "away from the deployment's") })
	if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n != 100 {
		t.Errorf("%d documents are left, %v", n, err)
	}
	set.Change(func() { set.Ahead = 0 })
	if err := <-ended; err != nil {
		t.Errorf("with the right clock: %v\n%s", err, errs.since(0))
	}
	if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d documents are left, %v", n, err)
	}
}
