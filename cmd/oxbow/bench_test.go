package main

import (
	"encoding/json"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bench"
)

const minuteLayout = `collections:
  fla.logGset:
    time: {field: time, unit: s, every: minute}
    keep: 3m
    hold: 0s
`

// TestBenchAddsUp runs the load for a moment and holds its figures against each other and against what the server has.
func TestBenchAddsUp(t *testing.T) {
	for _, test := range []struct {
		name, layout string
		updateBatch  string
	}{{"partitions", minuteLayout, "20"}, {"plain, single updates", "", "1"}} {
		t.Run(test.name, func(t *testing.T) {
			uri := openGateway(t, test.layout)
			stdout, stderr, err := oxbowCommand(t, nil, "bench", "log", "--uri", uri, "--inserts", "24000", "--updates", "1200", "--duration", "2s",
				"--batch", "50", "--update-batch", test.updateBatch, "--workers", "2", "--json")
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			var r bench.Result
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			checkBench(t, &r)
			logs := database(t, uri, "fla").Collection("logGset")
			if n := count(t, logs, bson.D{}); n != r.First+r.Kinds[0].Documents {
				t.Errorf("the server has %d documents, the result %d and %d", n, r.First, r.Kinds[0].Documents)
			}
			if n := count(t, logs, bson.D{{Key: "state", Value: bson.D{{Key: "$gt", Value: 0}}}}); n == 0 || n > r.Kinds[1].Documents+r.Kinds[2].Documents {
				t.Errorf("%d documents are changed, the result has %d and %d updates", n, r.Kinds[1].Documents, r.Kinds[2].Documents)
			}
			if (r.Partitions != nil) != (test.layout != "") {
				t.Errorf("partitions: %+v", r.Partitions)
			}
			if r.Storage == nil || r.Storage.LogBytes == 0 {
				t.Errorf("storage: %+v", r.Storage)
			}
			specs, err := logs.Indexes().ListSpecifications(t.Context())
			if err != nil || len(specs) != 3 {
				t.Errorf("%d indexes, want 3: %v", len(specs), err)
			}
		})
	}
}

// checkBench holds a result's figures against each other.
func checkBench(t *testing.T, r *bench.Result) {
	t.Helper()
	if len(r.Kinds) != 3 {
		t.Fatalf("%d kinds of call", len(r.Kinds))
	}
	for i, k := range r.Kinds {
		batch := r.Batch
		if i > 0 {
			batch = r.Updates
		}
		if k.Calls == 0 || k.Documents+k.Unmatched+k.Failed != k.Calls*int64(batch) {
			t.Errorf("%s: %d calls of %d come to %d, %d unmatched, %d failed", k.Kind, k.Calls, batch, k.Documents, k.Unmatched, k.Failed)
		}
		if k.Failed > 0 || k.Unmatched > 0 {
			t.Errorf("%s: %d failed, %d unmatched: %v", k.Kind, k.Failed, k.Unmatched, r.Errors)
		}
		if k.P50 == 0 || k.P50 > k.P90 || k.P90 > k.P99 || k.P99 > k.P999 || k.P999 > k.Max {
			t.Errorf("%s: percentiles out of order: %+v", k.Kind, k)
		}
	}
	// 2 s at 24,000 a minute, 50 a call.
	if k := r.Kinds[0]; k.Asked != 24000 || k.Calls+k.NotBegun != 16 {
		t.Errorf("insert: %d calls and %d not begun, want 16", k.Calls, k.NotBegun)
	}
	if updates := r.Kinds[1].Calls + r.Kinds[1].NotBegun + r.Kinds[2].Calls + r.Kinds[2].NotBegun; updates != 40/int64(r.Updates) {
		t.Errorf("%d calls of updates, begun or not, want %d", updates, 40/r.Updates)
	}
	if w := r.Windows; w.Dropped.Windows != 0 || w.Made.Windows+w.Others.Windows > 2 || w.Made.Windows+w.Others.Windows == 0 {
		t.Errorf("windows: %+v", w)
	}
}

func TestBenchPrintsTable(t *testing.T) {
	uri := openGateway(t, minuteLayout)
	stdout, _, err := oxbowCommand(t, nil, "bench", "log", "--uri", uri, "--inserts", "6000", "--updates", "0", "--duration", "1s", "--batch", "10")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "fla.logGset", "asked/min", "p99.9", "calls not begun", "update by _id and time", "a partition was dropped", "partitions were made",
		"others", "dropped, 0 attempts failed", "in tables")
}

func TestBenchErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--batch", "0"}, "--batch"},
		{[]string{"--inserts", "-1"}, "--inserts"},
		{[]string{"--duration", "-1s"}, "--duration"},
		{[]string{"--ns", "fla"}, "namespace"},
		{[]string{"--time-field", "at.time"}, "at.time"},
		{[]string{"--time-field", "dev"}, "dev"},
	} {
		_, _, err := oxbowCommand(t, nil, append([]string{"bench", "log"}, test.args...)...)
		wantError(t, err, test.want)
	}
}

func TestLatency(t *testing.T) {
	if got := latency(0); got != "-" {
		t.Errorf("no call at all took %s", got)
	}
	if got := latency(1500 * time.Microsecond); got != "1.5 ms" {
		t.Errorf("1.5 ms are written as %s", got)
	}
}
