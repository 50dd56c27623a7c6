package oxbow

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
)

// TestCheckJobs names what only a job's kind can find in its parameters, before anything is opened.
func TestCheckJobs(t *testing.T) {
	for with, want := range map[string]string{
		`{strategy: slices, field: time, age: 1d, slice: 1h, archive: /archive, rotate: 1MiB}`: "",
		`{strategy: drop, parts: "db{yymmdd}.log", zone: Asia/Shanghai, age: 1d}`:              "",
		`{strategy: nightly, field: time, age: 1d, unpaced: "true"}`:                           "",
		`{strategy: slices, where: '{"flag": 1}', archive: /archive}`:                          "slices needs a field",
		`{strategy: nightly, field: time, age: 1d, unpaced: "true", archive: /archive}`:        "can't be archived",
		`{strategy: ranges, field: time, age: 1d, slice: 1h}`:                                  "ranges has no use for slice",
		`{strategy: ids, where: '{"flag": 1}', workers: 3}`:                                    "ids has no use for workers",
		`{strategy: ranges, field: time, age: 1d, follow: "true"}`:                             "ranges has no use for follow",
		`{strategy: ids, where: '{"flag": 1}', unpaced: "true"}`:                               "ids has no use for unpaced",
		`{strategy: slices, field: time, age: 1d, export: 10}`:                                 "slices has no use for export",
		`{strategy: slices, field: time, age: 1d, parts: "db{yymmdd}.log"}`:                    "slices has no use for parts",
		`{strategy: slices, field: time, age: 1d, rotate: 1MiB}`:                               "without an archive",
		`{strategy: slices, field: time, age: 1d, zone: Asia/Shanghai}`:                        "zone is that of the days in parts",
		`{field: time, age: 1d}`:                              "there is no strategy \"\"; there are drop",
		`{strategy: ranges, field: time, before: 2026-01-31}`: "",
		`{strategy: drop, age: 1d}`:                           "drop needs a collection that is split by time",
	} {
		cfg, err := config.Parse("oxbow.yaml", []byte("backends: {local: {embedded: data}}\njobs:\n  a: {kind: purge, on: b.c, with: "+with+"}\n"))
		if err != nil {
			t.Fatalf("%s: %v", with, err)
		}
		switch err := CheckJobs(cfg); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", with, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "oxbow.yaml:3:3")):
			t.Errorf("%s: %v, not %q at its place", with, err, want)
		}
	}
}

// unhindered is a pace that nothing slows.
type unhindered struct{}

func (unhindered) Wait(ctx context.Context, _ int, _ int64) error { return ctx.Err() }
func (unhindered) Share() float64                                 { return 1 }

// TestNamedPartsOfDatabase drops collections that are named by their time where their database lies, which is not where others do.
func TestNamedPartsOfDatabase(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "oxbow.yaml")
	text := "backends: {local: {embedded: " + dir + "/local}, other: {embedded: " + dir + "/other}}\ndatabases: {log: other, \"*\": local}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), Options{Listen: "127.0.0.1:0", File: file, Log: slog.DiscardHandler})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(t.Context())
	run := func(command driver.D) bson.Document {
		t.Helper()
		body, err := driver.Marshal(append(command, driver.E{Key: "$db", Value: "log"}))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := g.backends["other"].Run(t.Context(), &backend.Request{Body: body})
		if err == nil {
			err = backend.Check(reply)
		}
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	run(driver.D{{Key: "create", Value: "line200131"}})
	run(driver.D{{Key: "create", Value: "kept"}})
	parameters, err := (&purge.Parameters{Strategy: purge.Drop, Age: 1000, Parts: "log.line{yymmdd}"}).Document()
	if err != nil {
		t.Fatal(err)
	}
	job, err := g.jobs.kinds()[purge.KindName](maintain.Spec{ID: "lines", Kind: purge.KindName, Namespace: "log.line", Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	for out := (maintain.Outcome{}); !out.Done; {
		if out, err = job.Step(t.Context(), out.Checkpoint, unhindered{}); err != nil {
			t.Fatal(err)
		}
	}
	if left := run(driver.D{{Key: "listCollections", Value: 1}}).String(); strings.Contains(left, "line200131") || !strings.Contains(left, "kept") {
		t.Errorf("left: %s", left)
	}
}
