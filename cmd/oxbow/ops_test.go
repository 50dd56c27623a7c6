package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// slowRemove begins a remove that takes its time for each document, and gives the channel on which its error comes.
func slowRemove(t *testing.T, c *mongo.Collection, comment string) <-chan error {
	t.Helper()
	docs := make([]any, 2000)
	for i := range docs {
		docs[i] = bson.D{{Key: "flag", Value: 1}}
	}
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	sum := bson.D{{Key: "$reduce", Value: bson.D{
		{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, 20_000}}}}, {Key: "initialValue", Value: 0},
		{Key: "in", Value: bson.D{{Key: "$add", Value: bson.A{"$$value", "$flag"}}}},
	}}}
	filter := bson.D{{Key: "flag", Value: 1}, {Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{sum, 0}}}}}
	ended := make(chan error, 1)
	go func() {
		_, err := c.DeleteMany(t.Context(), filter, options.DeleteMany().SetComment(comment))
		ended <- err
	}()
	return ended
}

// TestOps: what runs is listed with its shape and plan, killed by its comment or its number, and looked after by a policy.
func TestOps(t *testing.T) {
	uri := openGateway(t, "")
	c := database(t, uri, "im").Collection("msg")
	run := func(args ...string) string {
		t.Helper()
		stdout, stderr, err := oxbowCommand(t, nil, append([]string{"ops", "--uri", uri}, args...)...)
		if err != nil || stderr != "" {
			t.Fatalf("%q: %v %s", args, err, stderr)
		}
		return stdout
	}
	wantText(t, run(), "nothing runs that was asked for: what runs for less than 1s is not shown")

	ended := slowRemove(t, c, "nightly cleanup")
	var list []shownOperation
	for until := time.Now().Add(30 * time.Second); len(list) == 0 && time.Now().Before(until); {
		if err := json.Unmarshal([]byte(run("--older", "1ms", "--kind", "remove", "--json")), &list); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 || list[0].Plan == nil || *list[0].Plan != "COLLSCAN" || list[0].Namespace != "im.msg" || list[0].Examined != nil || !strings.HasPrefix(list[0].Shape, "{flag: ?") {
		t.Fatalf("listed %+v", list)
	}
	wantText(t, run("--older", "0s", "--ns", "im.*"), "OPID", "remove", "im.msg", "COLLSCAN", `comment "nightly cleanup"`)
	if all := run("--older", "0s", "--ns", "im.other"); !strings.Contains(all, "nothing runs") {
		t.Errorf("on another collection: %s", all)
	}
	wantText(t, run("kill", "--comment", "nightly"), "remove on im.msg: killed and gone")
	if err := <-ended; !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the remove ended with %v", err)
	}

	ended = slowRemove(t, c, "")
	wantText(t, run("watch", "--documents", "10", "--older", "1ms", "--action", "kill", "--dry-run", "--every", "20ms", "--for", "1s"), "would be killed: remove without an index (COLLSCAN) on im.msg")
	wantText(t, run("watch", "--documents", "10", "--older", "1ms", "--action", "kill", "--every", "20ms", "--for", "5s", "--json"), `"action":"kill"`, `"gone":true`)
	if err := <-ended; !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the remove ended with %v", err)
	}
}

func TestOpsErrors(t *testing.T) {
	uri := openGateway(t, "")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"kill"}, []string{"opid", "comment", "app"}},
		{[]string{"kill", "--opid", "999999"}, []string{"nothing runs"}},
		{[]string{"kill", "--opid", "1", "--member", "b:1"}, []string{"--member", `there is no "b:1"`}},
		{[]string{"--kind", "delete"}, []string{"--kind", "a delete is listed as remove"}},
		{[]string{"watch", "--action", "maim"}, []string{"--action", "log, alert, kill"}},
		{[]string{"watch", "--kind", "insert"}, []string{"insert", "remove"}},
		{[]string{"watch", "--ns", "im"}, []string{"DATABASE.COLLECTION"}},
		{[]string{"watch", "--every", "0s"}, []string{"--every"}},
		{[]string{"watch", "--older", "0s"}, []string{"--older"}},
		{[]string{"watch", "--documents", "0"}, []string{"--documents"}},
		{[]string{"now"}, []string{"no argument"}},
	} {
		_, _, err := oxbowCommand(t, nil, append([]string{"ops", "--uri", uri}, test.args...)...)
		wantError(t, err, test.want...)
	}
	secured := openGateway(t, "auth: on\n")
	_, _, err := oxbowCommand(t, nil, "ops", "--uri", secured)
	wantError(t, err, "no member tells what it runs", "requires authentication")
	_, _, err = oxbowCommand(t, nil, "ops", "--uri", "mongodb://ada:secret@127.0.0.1:1/?serverSelectionTimeoutMS=50")
	wantError(t, err, "reach mongodb://127.0.0.1:1")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is in %v", err)
	}
}
