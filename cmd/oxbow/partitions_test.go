package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestPartitions makes, lists, hides, brings back and drops partitions through the command line.
func TestPartitions(t *testing.T) {
	uri := openGateway(t, dayLayout)
	run := func(command string, args ...string) string {
		t.Helper()
		stdout, _, err := oxbowCommand(t, nil, append([]string{"partitions", command, "fla.log", "--uri", uri}, args...)...)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return stdout
	}
	wantText(t, run("create", "--from", "2001-02-01", "--to", "2001-02-05T00:00:00Z"), "4 partitions made")
	log := database(t, uri, "fla").Collection("log")
	for day := 1; day <= 4; day++ {
		doc := bson.D{{Key: "_id", Value: day}, {Key: "time", Value: time.Date(2001, 2, day, 12, 0, 0, 0, time.UTC)}}
		if _, err := log.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	rows := partitionRows(run("list"))
	if len(rows) != 4 || rows[0][2] != "active" || rows[0][3] != "2001-02-01T00:00:00Z" || rows[0][4] != "2001-02-02T00:00:00Z" || rows[0][6] != "1" {
		t.Fatalf("unexpected list: %q", rows)
	}

	wantText(t, run("drop", "--before", "2001-02-03"), "2 partitions hidden", "hidden: "+rows[0][0]+", 1 documents")
	if n := count(t, log, bson.D{}); n != 2 {
		t.Errorf("%d documents with two partitions hidden, want 2", n)
	}
	wantText(t, run("undo", "--name", rows[1][0]), "back: "+rows[1][0])
	if n := count(t, log, bson.D{}); n != 3 {
		t.Errorf("%d documents with one partition hidden, want 3", n)
	}
	wantText(t, run("undo", "--all"), "back: "+rows[0][0])
	if n := count(t, log, bson.D{}); n != 4 {
		t.Errorf("%d documents with none hidden, want 4", n)
	}

	wantText(t, run("drop", "--name", rows[0][0], "--now"), "1 partitions dropped")
	run("drop", "--name", rows[1][0])
	wantText(t, run("drop", "--before", "2001-02-04", "--now"), "2 partitions dropped")
	left := partitionRows(run("list"))
	if len(left) != 1 || left[0][0] != rows[3][0] {
		t.Errorf("%q are left, want the last", left)
	}
}

// partitionRows cuts a list into its fields, without the head.
func partitionRows(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return slices.Delete(rows, 0, 1)
}

func TestPartitionsErrors(t *testing.T) {
	uri := openGateway(t, dayLayout)
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"list", "fla"}, []string{`"fla" is no namespace`}},
		{[]string{"list", "fla.plain"}, []string{"fla.plain has no layout"}},
		{[]string{"create", "fla.log", "--from", "yesterday", "--to", "2001-02-03"}, []string{"--from", `"yesterday"`}},
		{[]string{"create", "fla.log", "--from", "2001-02-03"}, []string{"needs --from and --to", "createPartitions.to"}},
		{[]string{"create", "fla.log", "--from", "2001-02-03", "--to", "2001-02-03"}, []string{"before"}},
		{[]string{"list"}, []string{"DB.COLL"}},
		{[]string{"drop", "fla.log", "--before", "2001-2-3"}, []string{"--before", `"2001-2-3"`}},
		{[]string{"drop", "fla.log", "--name", "fla.log_x"}, []string{`fla.log has no partition "fla.log_x"`}},
		{[]string{"drop", "fla.log"}, []string{"before", "name"}},
		{[]string{"undo", "fla.log", "--name", "fla.log_x"}, []string{"no partition fla.log_x"}},
		{[]string{"undo", "fla.log", "--name", "x", "--all"}, []string{"all", "name"}},
	} {
		t.Run(fmt.Sprint(test.args), func(t *testing.T) {
			_, _, err := oxbowCommand(t, nil, append([]string{"partitions", "--uri", uri}, test.args...)...)
			wantError(t, err, test.want...)
		})
	}
}

func TestPartitionsByHashErrors(t *testing.T) {
	uri := openGateway(t, "collections:\n  im.user: {hash: {field: uid, count: 2}}\n")
	run := func(args ...string) error {
		_, _, err := oxbowCommand(t, nil, append([]string{"partitions", "--uri", uri}, args...)...)
		return err
	}
	if err := run("create", "im.user"); err != nil {
		t.Fatal(err)
	}
	wantError(t, run("create", "im.user", "--from", "2001-02-01"), "im.user is not split by time", "from")
	wantError(t, run("drop", "im.user", "--before", "2001-02-01"), "im.user is not split by time", "--name")
}
