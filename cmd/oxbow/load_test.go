package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const dayLayout = `collections:
  fla.log:
    time: {field: time, every: day}
`

func TestLoadJSONLines(t *testing.T) {
	uri := openGateway(t, dayLayout)
	file := writeFile(t, "log.jsonl", `{"_id": {"$oid": "5f1d7a0c9b1e8a0001000001"}, "time": {"$date": "2001-02-03T04:05:06Z"}, "n": {"$numberLong": "7"}}

{"_id": 2, "time": {"$date": "2001-02-04T00:00:00Z"}, "n": 1.5}
`)
	if _, stderr, err := oxbowCommand(t, nil, "load", "--uri", uri, "--ns", "fla.log", file); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	log := database(t, uri, "fla").Collection("log")
	if n := count(t, log, bson.D{}); n != 2 {
		t.Errorf("%d documents, want 2", n)
	}
	var doc bson.D
	id, _ := bson.ObjectIDFromHex("5f1d7a0c9b1e8a0001000001")
	if err := log.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	want := bson.D{{Key: "_id", Value: id}, {Key: "time", Value: bson.NewDateTimeFromTime(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC))}, {Key: "n", Value: int64(7)}}
	if got, want := fmt.Sprintf("%#v", doc), fmt.Sprintf("%#v", want); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

func TestLoadCSVFromStandardInput(t *testing.T) {
	uri := openGateway(t, dayLayout)
	rows := "_id:int,time:date,dev:long,ok:bool,text:string,free,empty\n" +
		"1,2001-02-03,7,true,\"a, \"\"b\"\"\",12,\n" +
		"2,2001-02-04T05:06:07Z,8,false,12,x,\n"
	_, stderr, err := oxbowCommand(t, strings.NewReader(rows), "load", "--uri", uri, "--ns", "fla.log", "--format", "csv", "-")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stderr, "2 documents stored, 0 refused")
	log := database(t, uri, "fla").Collection("log")
	for _, filter := range []bson.D{
		{{Key: "_id", Value: 1}, {Key: "time", Value: time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)}, {Key: "ok", Value: true}, {Key: "text", Value: `a, "b"`}},
		{{Key: "_id", Value: 2}, {Key: "time", Value: time.Date(2001, 2, 4, 5, 6, 7, 0, time.UTC)}, {Key: "text", Value: "12"}, {Key: "free", Value: "x"}},
		{{Key: "dev", Value: bson.D{{Key: "$type", Value: "long"}}}, {Key: "free", Value: bson.D{{Key: "$type", Value: "int"}}}},
		{{Key: "_id", Value: 2}, {Key: "empty", Value: bson.D{{Key: "$exists", Value: false}}}},
	} {
		if n := count(t, log, filter); n != 1 {
			t.Errorf("%v: %d documents, want 1", filter, n)
		}
	}
}

func TestLoadListsRefusedDocuments(t *testing.T) {
	uri := openGateway(t, dayLayout)
	file := writeFile(t, "log.jsonl", `{"_id": 1, "time": {"$date": "2001-02-03T00:00:00Z"}}
{"_id": 1, "time": {"$date": "2001-02-03T00:00:00Z"}}
{"_id": 3}
{"_id": 4, "time": {"$date": "2001-02-03T00:00:00Z"}}
`)
	_, stderr, err := oxbowCommand(t, nil, "load", "--uri", uri, "--ns", "fla.log", file)
	wantError(t, err, "2 documents were refused")
	wantText(t, stderr, file+":2: ", file+":3: ", "2 documents stored, 2 refused")
	log := database(t, uri, "fla").Collection("log")
	if n := count(t, log, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{1, 4}}}}}); n != 2 {
		t.Errorf("%d of the other documents, want 2", n)
	}
}

// TestLoadGoesOn stops at a line that can't be read, and goes on from where it says.
func TestLoadGoesOn(t *testing.T) {
	uri := openGateway(t, dayLayout)
	var lines []string
	for i := 1; i <= 50; i++ {
		lines = append(lines, fmt.Sprintf(`{"_id": %d, "time": {"$date": "2001-02-03T00:00:00Z"}}`, i))
	}
	good := lines[32]
	lines[32] = `{"_id": 33, "time": `
	file := writeFile(t, "log.jsonl", strings.Join(lines, "\n"))
	args := []string{"load", "--uri", uri, "--ns", "fla.log", "--batch", "10", file}
	_, _, err := oxbowCommand(t, nil, args...)
	wantError(t, err, "line 33", "--from-line 33")

	lines[32] = good
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := oxbowCommand(t, nil, append(args, "--from-line", "33")...)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stderr, "18 documents stored, 0 refused")
	if n := count(t, database(t, uri, "fla").Collection("log"), bson.D{}); n != 50 {
		t.Errorf("%d documents, want 50", n)
	}
}

func TestLoadErrors(t *testing.T) {
	uri := openGateway(t, "")
	for _, test := range []struct {
		name  string
		stdin string
		args  []string
		want  []string
	}{
		{"a value of the wrong type", "_id:int,dev:long\n1,7\n2,seven\n", []string{"--ns", "fla.log", "--format", "csv", "-"}, []string{"line 3", "field dev", `"seven" is no long: a whole number`}},
		{"an unknown type", "dev:number\n1\n", []string{"--ns", "fla.log", "--format", "csv", "-"}, []string{"line 1", `"dev:number"`, "objectId"}},
		{"no header", "", []string{"--ns", "fla.log", "--format", "csv", "-"}, []string{"line 1"}},
		{"a quote inside a value", "dev\na\"b\n", []string{"--ns", "fla.log", "--format", "csv", "-"}, []string{"line 2"}},
		{"a value too many", "dev\n1,2\n", []string{"--ns", "fla.log", "--format", "csv", "-"}, []string{"line 2"}},
		{"an array as a document", "[1]\n", []string{"--ns", "fla.log", "-"}, []string{"line 1"}},
		{"an unknown format", "", []string{"--ns", "fla.log", "--format", "xml", "-"}, []string{`"xml"`}},
		{"no collection", "", []string{"--ns", "fla", "-"}, []string{`"fla" is no namespace`}},
		{"no file", "", []string{"--ns", "fla.log", "no-such-file"}, []string{"no-such-file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := oxbowCommand(t, strings.NewReader(test.stdin), append([]string{"load", "--uri", uri}, test.args...)...)
			wantError(t, err, test.want...)
		})
	}
}
