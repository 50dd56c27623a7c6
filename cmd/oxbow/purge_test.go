package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// purgeLayouts are a collection whole and split in each way.
var purgeLayouts = map[string]string{
	"plain": "",
	"time":  "collections:\n  fla.log:\n    time: {field: time, every: day}\n",
	"hash":  "collections:\n  fla.log:\n    hash: {field: dev, count: 4}\n",
	"both":  "collections:\n  fla.log:\n    time: {field: time, every: day}\n    hash: {field: dev, count: 4}\n",
}

// purgedLines makes lines, one an hour for ten days, the first half of which is older than five days; their _id counts from 0.
func purgedLines(t *testing.T, uri string, indexed bool) (*mongo.Collection, []bson.D) {
	t.Helper()
	c := database(t, uri, "fla").Collection("log")
	if indexed {
		if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "time", Value: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	var docs []bson.D
	for i := range 240 {
		at := time.Now().Add(-time.Duration(240-i)*time.Hour + 30*time.Minute).Truncate(time.Millisecond)
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "time", Value: bson.NewDateTimeFromTime(at)}, {Key: "dev", Value: int32(i % 7)}})
	}
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return c, docs
}

// wantLeft checks that exactly some documents are left.
func wantLeft(t *testing.T, c *mongo.Collection, want []bson.D) {
	t.Helper()
	cursor, err := c.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		t.Fatal(err)
	}
	var got []bson.D
	if err := cursor.All(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d documents are left, want %d", len(got), len(want))
	}
}

// unthrottled turns the throttle off: the machine that runs the tests may be busy.
const unthrottled = "cpu=off disk=off latency=off canary=off"

func purgeArgs(command, uri string, more ...string) []string {
	args := []string{"purge", command, "--uri", uri, "--ns", "fla.log", "--time-field", "time", "--before", "5d", "--throttle", unthrottled}
	return append(args, more...)
}

func TestPurgeRun(t *testing.T) {
	// internal/maintain/purge tests each strategy on each layout.
	for name, strategy := range map[string]string{"plain": "slices", "time": "ranges", "hash": "ids", "both": "nightly"} {
		t.Run(name+" "+strategy, func(t *testing.T) {
			t.Parallel()
			uri := openGateway(t, purgeLayouts[name])
			c, docs := purgedLines(t, uri, true)
			args := purgeArgs("run", uri, "--strategy", strategy, "--batch", "50")
			if strategy == "slices" {
				args = append(args, "--slice", "24h")
			}
			stdout, stderr, err := oxbowCommand(t, nil, args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			wantText(t, stdout, "done, 120 documents gone")
			wantLeft(t, c, docs[120:])
		})
	}
}

func TestPurgeDrop(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, purgeLayouts["time"])
	c, docs := purgedLines(t, uri, false)
	stdout, stderr, err := oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "drop", "--archive", t.TempDir())...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	cut := time.Now().UTC().Add(-5 * 24 * time.Hour).Truncate(24 * time.Hour)
	first := 0
	for docs[first][1].Value.(bson.DateTime).Time().Before(cut) {
		first++
	}
	wantText(t, stdout, fmt.Sprintf("done, %d documents gone", first), fmt.Sprintf("archived by this run: %d documents", first))
	wantLeft(t, c, docs[first:])
}

func TestPurgePlan(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	if _, err := c.InsertMany(t.Context(), []bson.D{{{Key: "_id", Value: "a"}, {Key: "time", Value: "yesterday"}}, {{Key: "_id", Value: "b"}}}); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := oxbowCommand(t, nil, purgeArgs("plan", uri)...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "goes now: 120 documents", "a string", "missing", "best: slices", "oxbow purge run --uri "+uri+" --ns fla.log --strategy slices --time-field time --before 5d")
	stdout, _, err = oxbowCommand(t, nil, purgeArgs("plan", uri, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var plan purgePlan
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || plan.Collection.Matches != 120 || plan.Plan.Winner != "slices" {
		t.Errorf("plan %s: %v", stdout, err)
	}
	stdout, _, err = oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "ranges", "--dry-run")...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "goes now: 120 documents", "nothing was changed")
	if n := count(t, c, bson.D{}); n != int64(len(docs)+2) {
		t.Errorf("%d documents after plans and a dry run, want %d", n, len(docs)+2)
	}
}

func TestPurgeWithoutIndex(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, false)
	wanted := `createIndex({"time": 1})`
	stdout, _, err := oxbowCommand(t, nil, purgeArgs("plan", uri)...)
	wantError(t, err, "nothing can take")
	wantText(t, stdout, "refused", wanted)
	_, _, err = oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "ranges")...)
	wantError(t, err, wanted)
	wantLeft(t, c, docs)
}

// TestPurgeArchive: zstd and mongorestore's reading of BSON give back what went.
func TestPurgeArchive(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, purgeLayouts["hash"])
	c, docs := purgedLines(t, uri, true)
	dir := t.TempDir()
	stdout, stderr, err := oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "ranges", "--archive", dir)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantText(t, stdout, "archived by this run: 120 documents")
	wantLeft(t, c, docs[120:])
	if path, err := exec.LookPath("sha256sum"); err == nil {
		check := exec.Command(path, "-c", "SHA256SUMS")
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("sha256sum: %v\n%s", err, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "fla", "log.*.bson.zst"))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

// TestPurgeGoesOn: a job that was stopped goes on where it was, and tells how.
func TestPurgeGoesOn(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	stop := filepath.Join(t.TempDir(), "stop")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := purgeArgs("run", uri, "--strategy", "ranges", "--stop-file", stop)
	root := rootCommand()
	var out shown
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	await(t, "the stop file is told", func() bool { return strings.Contains(out.since(0), "stop file") })
	cancel()
	wantError(t, <-ended, "goes on where it was")
	wantLeft(t, c, docs)
	if err := os.Remove(stop); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := oxbowCommand(t, nil, args...); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantLeft(t, c, docs[120:])
}

func TestPurgeErrors(t *testing.T) {
	uri := openGateway(t, "")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"plan"}, "nothing says what goes"},
		{[]string{"plan", "--before", "soon"}, "--before"},
		{[]string{"plan", "--before", "1d"}, "field that tells"},
		{[]string{"plan", "--before", "1d", "--time-field", "time", "--unit", "min"}, "no unit"},
		{[]string{"plan", "--where", "{"}, "--where"},
		{[]string{"plan", "--where", `{"a": {"$foo": 1}}`}, "$foo"},
		{[]string{"plan", "--where", `{"a": 1} {"b": 1}`}, "not one JSON document"},
		{[]string{"plan", "--where", "", "--before", "1d", "--time-field", "time"}, "--where was given an empty text"},
		{[]string{"plan", "--where", `null`, "--before", "1d", "--time-field", "time"}, "--where"},
		{[]string{"plan", "--where", `[{"a": 1}]`, "--before", "1d", "--time-field", "time"}, "--where"},
		{[]string{"run", "--strategy", "broom", "--where", `{"a": 1}`}, "broom"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--limit-documents", "many"}, "--limit-documents"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--limit-bytes", "many"}, "--limit-bytes"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--window", "at night"}, "--window"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--throttle", "lag>2"}, "--throttle"},
		{[]string{"run", "--strategy", "drop", "--before", "1d", "--parts", "fla.log"}, "template"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--slice", "1h"}, "ids has no use for slice"},
		{[]string{"run", "--strategy", "ids", "--where", `{"a": 1}`, "--archive-rotate", "1MiB"}, "without an archive"},
	} {
		_, _, err := oxbowCommand(t, nil, append([]string{"purge", test.args[0], "--uri", uri, "--ns", "fla.log"}, test.args[1:]...)...)
		wantError(t, err, test.want)
	}
}
