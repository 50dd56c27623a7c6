package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// jobsRun runs a command on jobs that must succeed.
func jobsRun(t *testing.T, uri string, args ...string) string {
	t.Helper()
	stdout, _, err := oxbowCommand(t, nil, append([]string{"jobs", "--uri", uri}, args...)...)
	if err != nil {
		t.Fatalf("jobs %s: %v", strings.Join(args, " "), err)
	}
	return stdout
}

// jobsUntil asks for jobs until the answer has a text.
func jobsUntil(t *testing.T, uri, text string, args ...string) string {
	t.Helper()
	for range 600 {
		if out := jobsRun(t, uri, args...); strings.Contains(out, text) {
			return out
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("jobs %s does not tell %q: %s", strings.Join(args, " "), text, jobsRun(t, uri, args...))
	return ""
}

// TestJobsOfAGateway runs a purge of a configuration, and gives it orders through the gateway.
func TestJobsOfAGateway(t *testing.T) {
	job := func(more string) string {
		return "throttle: " + unthrottled + "\nhttp: 127.0.0.1:0\njobs:\n  old-mail:\n    kind: purge\n    on: im.mail\n    with: {strategy: ids, where: '{\"flag\": 1}', batch: 10}\n    every: 1s\n" + more +
			"collections:\n  fla.log: {time: {field: at, every: day}, keep: 7d}\n"
	}
	folder := t.TempDir()
	file := writeFile(t, "oxbow.yaml", gatewayConfig(folder, job("    limits: {documents: 20}\n")))
	g := openGatewayFile(t, file)
	mail := database(t, g.URI(), "im").Collection("mail")
	if _, err := database(t, g.URI(), "im").RunCommand(t.Context(), driver.D{{Key: "createIndexes", Value: "mail"},
		{Key: "indexes", Value: driver.A{driver.D{{Key: "key", Value: driver.D{{Key: "flag", Value: 1}}}, {Key: "name", Value: "flag_1"}}}}}).Raw(); err != nil {
		t.Fatal(err)
	}
	if out := jobsRun(t, g.URI(), "pause", "old-mail"); out != "ordered: pause old-mail\n" {
		t.Errorf("told %q", out)
	}
	var docs []any
	for i := range 400 {
		docs = append(docs, driver.D{{Key: "_id", Value: i}, {Key: "flag", Value: i % 2}})
	}
	if _, err := mail.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	out := jobsUntil(t, g.URI(), "paused by an order", "list")
	wantText(t, out, "old-mail", "purge", "im.mail", "paused", "retention:fla.log", "retention")
	jobsRun(t, g.URI(), "resume", "old-mail")
	jobsUntil(t, g.URI(), `"state": "running"`, "show", "old-mail", "--json")
	// History tells of passes: only an order in the middle of one is in it, and at twenty documents a second this pass takes ten.
	jobsRun(t, g.URI(), "pause", "old-mail")
	jobsUntil(t, g.URI(), "paused by an order", "list")
	jobsRun(t, g.URI(), "resume", "old-mail")
	jobsRun(t, g.URI(), "set", "old-mail", "--limit-documents", "0", "--priority", "7")
	for i := 0; count(t, mail, driver.D{{Key: "flag", Value: 1}}) > 0; i++ {
		if time.Sleep(100 * time.Millisecond); i == 600 {
			t.Fatalf("the purge does not end:\n%s", jobsRun(t, g.URI(), "show", "old-mail"))
		}
	}
	if n := count(t, mail, driver.D{}); n != 200 {
		t.Errorf("%d documents are left, want 200", n)
	}
	wantText(t, jobsUntil(t, g.URI(), "limits", "show", "old-mail"), "priority   7", "limits     none")
	jobsRun(t, g.URI(), "set", "old-mail", "--limit-documents", "1000000/s", "--limit-bytes", "10MiB/s")
	wantText(t, jobsUntil(t, g.URI(), "MiB", "show", "old-mail"), "limits     1000000 documents/s, 10.0 MiB/s")
	wantText(t, jobsUntil(t, g.URI(), "documents", "history", "old-mail"), "paused by an order")
	// HTTP tells the same.
	resp, err := http.Get("http://" + g.HTTPAddr().String() + "/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var list []maintain.Status
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) != 2 || list[0].ID != "old-mail" || list[1].Kind != "retention" {
		t.Errorf("%v: %s", err, text)
	}
	_, _, err = oxbowCommand(t, nil, "jobs", "--uri", g.URI(), "remove", "old-mail")
	wantError(t, err, "job old-mail is in the configuration: take it out of the file")
	// A job that the file does not have any more stops, and stays to be seen.
	if err := os.WriteFile(file, []byte(gatewayConfig(folder, "throttle: "+unthrottled+"\nhttp: 127.0.0.1:0\ncollections:\n  fla.log: {time: {field: at, every: day}, keep: 7d}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := jobsUntil(t, g.URI(), "the configuration does not have it any more", "show", "old-mail"); !strings.Contains(out, "stopped") {
		t.Errorf("nobody runs it, and it is not told as stopped:\n%s", out)
	}
	for range 600 {
		if _, _, err := oxbowCommand(t, nil, "jobs", "--uri", g.URI(), "remove", "old-mail"); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if out := jobsRun(t, g.URI(), "list"); strings.Contains(out, "old-mail") {
		t.Errorf("removed, and there:\n%s", out)
	}
	_, _, err = oxbowCommand(t, nil, "jobs", "--uri", g.URI(), "pause", "old-mail")
	wantError(t, err, "there is no such job")
	_, _, err = oxbowCommand(t, nil, "jobs", "--uri", g.URI(), "pause", "retention:fla.log")
	wantError(t, err, "retention can be resumed")
}

// steps is a job of so many steps, which take a moment each.
type steps int

func (s steps) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	n := int64(0)
	if v, ok := bson.Get(checkpoint, "n"); ok {
		n = v.AsInt64()
	}
	if err := pace.Wait(ctx, 1, 0); err != nil {
		return maintain.Outcome{}, err
	}
	next, err := driver.Marshal(driver.D{{Key: "n", Value: n + 1}})
	time.Sleep(time.Millisecond)
	return maintain.Outcome{Checkpoint: next, Done: n+1 >= int64(s), Documents: 1, Remaining: int64(s) - n - 1}, err
}

// TestJobsOfADeployment runs a job on a server by its connection string, here another Oxbow, and reaches it by the same.
func TestJobsOfADeployment(t *testing.T) {
	uri := openGateway(t, "")
	b, err := remote.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	runner := maintain.New(maintain.Options{Store: maintain.NewStore(b, maintain.DefaultDatabase), Kinds: map[string]maintain.Kind{
		"steps": func(maintain.Spec) (maintain.Job, error) { return steps(100_000), nil },
	}})
	wantText(t, jobsRun(t, uri, "list"), "no jobs")
	ended := make(chan error, 1)
	go func() {
		s, err := runner.Once(context.Background(), maintain.Spec{ID: "a job", Kind: "steps", Namespace: "im.mail"}, nil)
		if err == nil && s.State != maintain.Stopped {
			err = fmt.Errorf("%+v", s)
		}
		ended <- err
	}()
	jobsUntil(t, uri, "running", "list")
	jobsRun(t, uri, "pause", "a job")
	jobsUntil(t, uri, "paused by an order", "list")
	jobsRun(t, uri, "resume", "a job")
	wantText(t, jobsUntil(t, uri, "running", "show", "a job"), "run by", "im.mail", "this pass")
	jobsRun(t, uri, "stop", "a job", "--now")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantText(t, jobsRun(t, uri, "history", "a job"), "paused by an order", "stopped by an order")
	jobsRun(t, uri, "remove", "a job")
	wantText(t, jobsRun(t, uri, "list"), "no jobs")
	for _, args := range [][]string{{"set", "a job"}, {"set", "a job", "--limit-documents", "many"}, {"set", "a job", "--limit-bytes", "1 potato"}, {"set", "a job", "--priority", "1000"}, {"pause"}} {
		if _, _, err := oxbowCommand(t, nil, append([]string{"jobs", "--uri", uri}, args...)...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestJobsForAMonitor: who may see a gateway's jobs and not the database of the command line's sees those, and is told of the others.
func TestJobsForAMonitor(t *testing.T) {
	t.Parallel()
	var entry strings.Builder
	if err := writeUser(&entry, "mon@admin", "tide"); err != nil {
		t.Fatal(err)
	}
	users := "users:\n" + strings.ReplaceAll(entry.String(), "roles: [readWrite]", "roles: [clusterMonitor]")
	uri := openGateway(t, users+"collections:\n  fla.log: {time: {field: at, every: day}, keep: 7d}\n")
	uri = strings.Replace(uri, "mongodb://", "mongodb://mon:tide@", 1)
	stdout, stderr, err := oxbowCommand(t, nil, "jobs", "list", "--uri", uri)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "retention:fla.log")
	wantText(t, stderr, "jobs of the command line are not shown: ", "not authorized")
	if strings.Contains(stdout+stderr, "tide") {
		t.Error("the password is shown")
	}
}
