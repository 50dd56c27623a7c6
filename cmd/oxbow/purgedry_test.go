package main

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestPurgeDryRun: a dry run says what the run would do, also where that would be refused, and changes nothing.
func TestPurgeDryRun(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	c, docs := purgedLines(t, uri, true)
	arrays := bson.D{{Key: "_id", Value: "array"}, {Key: "time", Value: bson.A{bson.DateTime(0)}}}
	if _, err := c.Database().Collection("arrays").InsertOne(t.Context(), arrays); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Database().Collection("arrays").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "time", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"shop.hits010203", "shop.hits010204"} {
		if _, err := database(t, uri, "shop").Collection(day[len("shop."):]).InsertOne(t.Context(), bson.D{{Key: "n", Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args []string
		fail string // the error, "": none
		want string
	}{
		{purgeArgs("run", uri, "--strategy", "ranges"), "", "the first that would go by ranges, by _id:\n  {\"$numberInt\":\"0\"}"},
		{purgeArgs("run", uri, "--strategy", "ids", "--ns", "fla.arrays", "--time-field", "time"), "", "no document would go by ids now"},
		{purgeArgs("run", uri, "--strategy", "ranges", "--ns", "fla.arrays"), "ranges would take nothing: documents of fla.arrays have arrays in time", ""},
		{purgeArgs("run", uri, "--strategy", "drop"), "drop would take nothing: nothing is split by that time", ""},
		{[]string{"purge", "run", "--uri", uri, "--ns", "fla.log", "--strategy", "ttl"}, "ttl would take nothing: there is no TTL index", ""},
		{[]string{"purge", "run", "--uri", uri, "--ns", "shop.hits", "--strategy", "drop", "--parts", "shop.hits{yymmdd}", "--before", "2001-02-04"}, "", "would drop shop.hits010203: 1 documents"},
		{[]string{"purge", "run", "--uri", uri, "--ns", "shop.hits", "--strategy", "drop", "--parts", "shop.hits{yymmdd}", "--before", "2001-01-04"}, "", "none would be dropped"},
	} {
		stdout, stderr, err := oxbowCommand(t, nil, append(test.args, "--dry-run")...)
		if test.fail != "" {
			wantError(t, err, test.fail)
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v\n%s", test.args, err, stderr)
		}
		wantText(t, stdout, test.want, "\nnothing was changed\n")
	}
	wantLeft(t, c, docs)
	if n, err := database(t, uri, "shop").ListCollectionNames(t.Context(), bson.D{}); err != nil || len(n) != 2 {
		t.Errorf("%q are left, %v", n, err)
	}
}

// TestPurgePlanOfParts: collections that are named by their day need no time field to be planned for, as they need none to be dropped.
func TestPurgePlanOfParts(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	if _, err := database(t, uri, "shop").Collection("hits010203").InsertOne(t.Context(), bson.D{{Key: "n", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	plan := []string{"purge", "plan", "--uri", uri, "--ns", "shop.hits", "--parts", "shop.hits{yymmdd}"}
	stdout, stderr, err := oxbowCommand(t, nil, append(plan, "--before", "2001-02-04")...)
	if err != nil || stderr != "" {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantText(t, stdout, "1 parts are over, with 1 documents", "not by document: it needs a time field or a filter",
		"--ns shop.hits --strategy drop --before 2001-02-04 --parts 'shop.hits{yymmdd}'")
	_, _, err = oxbowCommand(t, nil, plan...)
	wantError(t, err, "drop needs a time before which documents go")
}

// TestPurgePlanDoubts: a plan for what is not there, or by a unit that the documents don't have, says so.
func TestPurgePlanDoubts(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "")
	purgedLines(t, uri, true)
	stdout, _, err := oxbowCommand(t, nil, purgeArgs("plan", uri, "--unit", "s")...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "most documents have a date there, which the unit date reads")
	if stdout, _, err = oxbowCommand(t, nil, purgeArgs("plan", uri)...); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stdout, "is the unit right") {
		t.Errorf("doubts the unit of dates:\n%s", stdout)
	}
	_, stderr, err := oxbowCommand(t, nil, purgeArgs("plan", uri, "--ns", "fla.lag")...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stderr, "there is no collection fla.lag now")
}
