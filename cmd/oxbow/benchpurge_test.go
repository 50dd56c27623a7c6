package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bench/ways"
)

// small are the flags of a comparison that takes seconds.
func small(more ...string) []string {
	return append([]string{"bench", "purge", "--documents", "3000", "--inserts", "200/s", "--updates", "100/s", "--warm-up", "200ms", "--idle", "1s", "--after", "500ms"}, more...)
}

// TestBenchPurge runs every way on a server by its connection string: what had to go goes, what had to stay stays, and nothing of it is left afterwards.
func TestBenchPurge(t *testing.T) {
	uri := openGateway(t, "")
	page := filepath.Join(t.TempDir(), "page.html")
	stdout, stderr, err := oxbowCommand(t, nil, small("--uri", uri, "--database", "bench", "--html", page, "--json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	checkWays(t, stdout)
	wantText(t, stderr, "drop (1 of 7), filling", "ranges (4 of 7), running", "of 1,500 documents", "counting")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, string(text), "slices-paced", "<svg", "the server takes no TTL index")
	names, err := database(t, uri, "bench").ListCollectionNames(t.Context(), bson.D{})
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// TestBenchPurgeServed runs the ways on a server of its own, which is put back to the same data for each.
func TestBenchPurgeServed(t *testing.T) {
	t.Setenv(runAsOxbow, "1") // the server is this binary
	folder := t.TempDir()
	run := func(strategies string, fills int) {
		t.Helper()
		stdout, stderr, err := oxbowCommand(t, nil, small("--serve", "--dir", folder, "--strategies", strategies, "--json")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		for _, run := range checkWays(t, stdout).Runs {
			if m := run.Fit.Memory; m.Group && m.Bytes != 320<<20 || !m.Group && !strings.Contains(run.Fit.Why, "no control group") {
				t.Errorf("%s: %+v", run.Way, run.Fit)
			}
		}
		if n := strings.Count(stderr, "filling"); n < fills || fills == 0 && n > 0 { // a slow one has several lines
			t.Errorf("%s: filled %d times, want %d", strategies, n, fills)
		}
	}
	run("drop,slices,ids", 2)
	run("ranges,nightly", 0) // on the data of before
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(left) != 3 {
		t.Errorf("left behind, beside two layouts' data and what it is: %v, %v", left, err)
	}
	_, _, err = oxbowCommand(t, nil, small("--serve", "--dir", folder, "--documents", "4000")...)
	wantError(t, err, "3000 documents")
}

// checkWays holds the figures of runs on an embedded engine against each other.
func checkWays(t *testing.T, stdout string) *ways.Result {
	t.Helper()
	var r ways.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Way == "ttl" {
			if run.Refused == "" {
				t.Errorf("ttl: %+v", run)
			}
			continue
		}
		if run.Refused != "" || !run.Finished() || run.Wrong() != "" || run.Failed > 0 {
			t.Errorf("%s: refused %q, stopped %q, wrong %q, %d failed: %v", run.Way, run.Refused, run.Stopped, run.Wrong(), run.Failed, run.Errors)
		}
		if run.Gone != 1500 || run.Took <= 0 || run.Idle.P99 < run.Idle.P50 || run.Idle.P50 == 0 || run.During.Calls == 0 || run.During.Inserted == 0 {
			t.Errorf("%s: %+v", run.Way, run)
		}
		if run.Fit.Why == "" || run.Fit.Data == 0 {
			t.Errorf("%s: 3,000 documents do not fit into memory: %+v", run.Way, run.Fit)
		}
		// The embedded engine knows its disk, and neither lag nor oplog.
		if run.Lag != nil || run.Oplog != nil || run.DiskBefore == nil || run.DiskAfter == nil {
			t.Errorf("%s: lag %v, oplog %v, disk %v and %v", run.Way, run.Lag, run.Oplog, run.DiskBefore, run.DiskAfter)
		}
		if len(run.Samples) == 0 || !slices.IsSortedFunc(run.Samples, func(a, b ways.Sample) int { return int(a.Gone - b.Gone) }) {
			t.Errorf("%s: samples %+v", run.Way, run.Samples)
		}
	}
	return &r
}

func TestBenchPurgePrintsTable(t *testing.T) {
	uri := openGateway(t, "")
	stdout, _, err := oxbowCommand(t, nil, small("--uri", uri, "--strategies", "nightly")...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "documents/s", "p99 idle", "kept up", "nightly", "does not count", "foreground p99", "none: the server does not report it")
}

func TestBenchPurgeErrors(t *testing.T) {
	uri := openGateway(t, "")
	if _, err := database(t, uri, "mine").Collection("precious").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--uri", uri, "--database", "mine"}, "precious"},
		{[]string{"--uri", uri, "--strategies", "prayer"}, "prayer"},
		{[]string{"--uri", uri, "--inserts", "many"}, "7000/s"},
		{[]string{"--uri", uri, "--documents", "1"}, "--documents"},
		{[]string{"--uri", uri, "--serve"}, "serve"},
		{nil, "serve"},
		{[]string{"--serve", "--memory", "8MiB"}, "--memory"},
	} {
		_, _, err := oxbowCommand(t, nil, append([]string{"bench", "purge"}, test.args...)...)
		wantError(t, err, test.want)
	}
	if n := count(t, database(t, uri, "mine").Collection("precious"), bson.D{}); n != 1 {
		t.Errorf("%d documents of somebody else are left", n)
	}
}

func TestPerSecondRate(t *testing.T) {
	for text, want := range map[string]int{"7000": 7000, "7000/s": 7000, "420000/m": 7000, "0": 0, "-1": -1, "x/s": -1, "": -1} {
		var r perSecondRate
		err := r.Set(text)
		if (err != nil) != (want < 0) || err == nil && int(r) != want {
			t.Errorf("%q: %d, %v", text, r, err)
		}
	}
}
