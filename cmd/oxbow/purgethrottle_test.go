package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow/internal/backend/embedded"
	"oxbow/internal/deployment/scripted"
)

// shown is what a command has shown until now.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shown) since(at int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()[at:]
}

// await waits until something is true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestPurgeIsThrottled purges a scripted replica set, on which one thing after the other goes wrong: each time the command says what, nothing goes any more, and
// when it is over the rest goes.
func TestPurgeIsThrottled(t *testing.T) {
	t.Parallel()
	engine, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	set := scripted.New("rs", &scripted.Member{State: "PRIMARY", Data: engine}, &scripted.Member{State: "SECONDARY", Data: engine}, &scripted.Member{State: "ARBITER"},
		&scripted.Member{State: "SECONDARY", Data: engine, Hidden: true, Delay: time.Hour, Lag: time.Hour, NoVote: true})
	uri := scripted.Serve(t, set)
	c := throttledLines(t, uri, 100_000)

	ctx, stop := context.WithCancel(t.Context())
	var out, errs shown
	ended := make(chan error, 1)
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs([]string{"purge", "run", "--uri", uri, "--ns", "fla.log", "--time-field", "time", "--before", "5d", "--strategy", "ranges", "--workers", "2", "--batch", "20",
		"--limit-documents", "2000/s", "--throttle", "canary=off"})
	go func() { ended <- root.ExecuteContext(ctx) }()
	count := func() int64 {
		n, err := c.CountDocuments(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	goesOn := func() {
		t.Helper()
		before := count()
		await(t, "documents go", func() bool { return count() < before })
	}
	goesOn()
	m := set.Members
	for _, c := range []struct {
		what, reason string
		begin, end   func()
	}{
		{"a lag", "stop: the lag of " + m[1].Host + " is 30s", func() { m[1].Lag = 30 * time.Second }, func() { m[1].Lag = 0 }},
		{"a lag beyond a delay", "stop: the lag of " + m[3].Host + ", beyond its delay of 1h0m0s, is 1m0s", func() { m[3].Lag += time.Minute }, func() { m[3].Lag -= time.Minute }},
		{"an arbiter where a member with data is away", "stop: no majority of rs can confirm writes", func() { m[1].Down = true }, func() { m[1].Down = false }},
		{"a full disk", "stop: the free share of the disk of " + m[0].Host + " is 1.0%",
			func() { m[0].Disk = bson.D{{Key: "fsTotalSize", Value: 100.0}, {Key: "fsUsedSize", Value: 99.0}} }, func() { m[0].Disk = nil }},
		{"a dirty cache", "stop: the dirty share of the cache on " + m[1].Host + " is 30.0%", func() {
			m[1].Status = bson.D{{Key: "wiredTiger", Value: bson.D{{Key: "cache", Value: bson.D{{Key: "maximum bytes configured", Value: 100}, {Key: "tracked dirty bytes in the cache", Value: 30}}}}}}
		}, func() { m[1].Status = nil }},
		{"a long queue", "stop: the queue on " + m[0].Host + " is 500", func() {
			m[0].Status = bson.D{{Key: "globalLock", Value: bson.D{{Key: "currentQueue", Value: bson.D{{Key: "total", Value: 500}}}}}}
		}, func() { m[0].Status = nil }},
		{"a new primary", "stop: rs has a new primary, " + m[1].Host, func() {
			m[0].State, m[1].State, m[0].Lag = "SECONDARY", "PRIMARY", 8*time.Second
			set.Term++
		}, func() { m[0].Lag = 0 }},
	} {
		at := len(errs.since(0))
		began := time.Now()
		set.Change(c.begin)
		await(t, c.what+" is shown: "+errs.since(at), func() bool { return strings.Contains(errs.since(at), c.reason) })
		t.Logf("%s: shown after %v", c.what, time.Since(began).Round(10*time.Millisecond))
		last := int64(-1)
		await(t, c.what+" stops it", func() bool {
			before := last
			time.Sleep(200 * time.Millisecond)
			last = count()
			return before == last
		})
		set.Change(c.end)
		goesOn()
	}
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "goes on where it was") {
		t.Errorf("stopped by hand: %v\n%s", err, errs.since(0))
	}
}

// throttledLines makes lines of which all are older than five days.
func throttledLines(t *testing.T, uri string, n int) *mongo.Collection {
	t.Helper()
	c := database(t, uri, "fla").Collection("log")
	if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "time", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-30 * 24 * time.Hour)
	for at := 0; at < n; at += 1000 {
		var docs []bson.D
		for i := at; i < min(n, at+1000); i++ {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "time", Value: begin.Add(time.Duration(i) * time.Second)}})
		}
		if _, err := c.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
