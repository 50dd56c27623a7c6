package main

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// slowOnes are the lines that go which have a field slow, each after as many steps as that says.
const slowOnes = `{"dev": {"$ne": 3}, "$expr": {"$gte": [{"$reduce": {"input": {"$range": [0, "$slow"]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, 0]}}`

// TestPurgeIsKilledAtItsEnd: when a purge's time is over its delete is killed where it runs, and gone when the command returns; later the rest goes.
func TestPurgeIsKilledAtItsEnd(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	slow := func(steps int) {
		t.Helper()
		if _, err := c.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "slow", Value: steps}}}}); err != nil {
			t.Fatal(err)
		}
	}
	slow(1_000_000) // each takes some tenths of a second
	args := func(more ...string) []string {
		return append(purgeArgs("run", uri, "--strategy", "nightly", "--unpaced", "--where", slowOnes), more...)
	}
	_, stderr, err := oxbowCommand(t, nil, args("--max-run", "2s")...)
	wantError(t, err, "which is its limit")
	ops, err := database(t, uri, "admin").RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}, {Key: "command.delete", Value: "log"}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if running, err := ops.Lookup("inprog").Array().Values(); err != nil || len(running) > 0 {
		t.Errorf("%v still runs: %v\n%s", running, err, stderr)
	}
	if n := count(t, c, bson.D{}); n <= 240-103 {
		t.Fatalf("%d lines are left: the delete was over before it was killed", n)
	}

	slow(1)
	var want []bson.D
	for i, doc := range docs {
		if doc = append(doc, bson.E{Key: "slow", Value: int32(1)}); i >= 120 || i%7 == 3 {
			want = append(want, doc)
		}
	}
	if _, stderr, err := oxbowCommand(t, nil, args()...); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantLeft(t, c, want)
}
