package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oxbow/internal/archive"
	"oxbow/internal/maintain/purge"
)

// TestPurgeInput: what is wrong with what was asked for is said, by its name, before anything is sent: there is no server here to send it to.
func TestPurgeInput(t *testing.T) {
	t.Parallel()
	run := func(more ...string) []string {
		return append([]string{"purge", "run", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--time-field", "time", "--before", "1d"}, more...)
	}
	for want, args := range map[string][]string{
		"workers are 1 to 1000, not -3":         run("--strategy", "ranges", "--workers", "-3"),
		"a batch has 1 to 10000":                run("--strategy", "ids", "--batch", "-1"),
		"not NaN":                               run("--strategy", "ids", "--max-ratio", "NaN"),
		"not +Inf":                              run("--strategy", "ids", "--max-ratio", "Inf"),
		"--max-run: -5s":                        run("--strategy", "ids", "--max-run", "-5s"),
		"--slice: 500µs":                        run("--strategy", "slices", "--slice", "500us"),
		"there is no unit \"fortnight\"":        run("--strategy", "ids", "--unit", "fortnight"),
		"database admin is the servers' own":    run("--strategy", "ids", "--ns", "admin.log"),
		"database oxbow_jobs has the jobs":      run("--strategy", "ids", "--ns", "oxbow_jobs.jobs"),
		"fla.system.views is the servers' own":  run("--strategy", "ids", "--ns", "fla.system.views"),
		"\"fla.a$b\" is no namespace":           run("--strategy", "ids", "--ns", "fla.a$b"),
		"\"f a.log\" is no namespace":           run("--strategy", "ids", "--ns", "f a.log"),
		"no name of a job":                      run("--strategy", "ids", "--id", "red\x1b[31m"),
		"512 bytes":                             run("--strategy", "ids", "--id", strings.Repeat("x", 3000)),
		"\"null\" is not one JSON document":     run("--strategy", "ids", "--where", "null"),
		"drop takes whole collections":          run("--strategy", "drop", "--where", `{"a": 1}`),
		"can't be archived before":              {"purge", "run", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--strategy", "ttl", "--archive", "folder"},
		"ttl has no use for a time field":       run("--strategy", "ttl"),
		"\"t.a\" is no template":                run("--strategy", "drop", "--parts", "t.a"),
		"nothing says what goes":                {"purge", "run", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--strategy", "ids", "--where", "{}"},
		"nothing lies before 2001-02-01T00:00:": run("--strategy", "ids", "--before", "2001-02-01", "--from", "2030-01-01"),
		"--workers: -1":                         {"purge", "plan", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--time-field", "time", "--before", "1d", "--workers", "-1"},
		"--trial: -1s":                          {"purge", "plan", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--time-field", "time", "--before", "1d", "--trial", "-1s"},
		"--night: 0s":                           {"purge", "plan", "--uri", "mongodb://127.0.0.1:1", "--ns", "fla.log", "--time-field", "time", "--before", "1d", "--night", "0s"},
	} {
		stdout, stderr, err := oxbowCommand(t, nil, args...)
		if err == nil || !strings.Contains(err.Error()+stderr, want) || stdout != "" {
			t.Errorf("%s: %v, %s%s; want only an error with %q", strings.Join(args, " "), err, stdout, stderr, want)
		}
	}
}

// TestPurgeOfNothing: a collection that is not there is told apart from one that holds nothing that goes.
func TestPurgeOfNothing(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	for ns, want := range map[string]bool{"fla.lag": true, "fla.log": false} {
		_, stderr, err := oxbowCommand(t, nil, "purge", "run", "--uri", uri, "--ns", ns, "--time-field", "time", "--before", "2000-01-01", "--throttle", unthrottled, "--strategy", "ids")
		if told := strings.Contains(stderr, "there is no collection "+ns); err != nil || told != want {
			t.Errorf("%s: %v\n%s", ns, err, stderr)
		}
	}
	wantLeft(t, c, docs)
}

// TestPurgeWithoutLists: a run whose archive could not be put into its lists does not end as if it had been.
func TestPurgeWithoutLists(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, archive.Checksums), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "ids", "--archive", dir)...)
	if err == nil || !strings.Contains(err.Error(), "not in the archive's lists") {
		t.Errorf("%v", err)
	}
	wantLeft(t, c, docs[120:])
	if err := os.Remove(filepath.Join(dir, archive.Checksums)); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := oxbowCommand(t, nil, purgeArgs("run", uri, "--strategy", "ids", "--archive", dir)...); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if entries, err := archive.Entries(dir); err != nil || len(entries) != 1 || entries[0].Documents != 120 {
		t.Errorf("%+v, %v", entries, err)
	}
}

// TestPurgePlanOfTTL: the command that a plan prints for the server's own expiry is taken as it is: it has nothing that ttl has no use for.
func TestPurgePlanOfTTL(t *testing.T) {
	t.Parallel()
	o := &purgeOptions{uri: "mongodb://127.0.0.1:1", ns: "fla.log", field: "time", unit: "date", before: "1d", where: `{"a": 1}`, documents: "10/s"}
	const want = "oxbow purge run --uri mongodb://127.0.0.1:1 --ns fla.log --strategy ttl --limit-documents 10/s"
	if got := o.command(&purge.Plan{Winner: purge.TTL}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
