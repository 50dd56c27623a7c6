package command_test

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/test/inprocess"
)

// TestPipelinesDontWriteBehindTheGateway: what a backend would run whole must not change partitions, the catalog, or a database of another backend.
func TestPipelinesDontWriteBehindTheGateway(t *testing.T) {
	g := inprocess.Open(t, `
backends: {one: {embedded: one}, two: {embedded: two}}
databases: {far: two, "*": one}
collections: {d.split: {hash: {field: k, count: 2}}}
`)
	run := func(command string) mongoerr.Code {
		var raw driver.Raw
		if err := driver.UnmarshalExtJSON([]byte(command), false, &raw); err != nil {
			t.Fatal(err)
		}
		reply, err := g.Run(t.Context(), &backend.Request{Body: bson.Document(raw)})
		if err != nil {
			t.Fatal(err)
		}
		code, _ := bson.Get(reply, "code")
		n, _ := code.AsInt64OK()
		return mongoerr.Code(n)
	}
	if code := run(`{"create": "split", "$db": "d"}`); code != 0 {
		t.Fatalf("create: %s", code)
	}
	for stage, want := range map[string]mongoerr.Code{
		`{"$out": {"db": "d", "coll": "split_1"}}`:             mongoerr.CommandNotSupported,
		`{"$out": {"db": "d", "coll": "split"}}`:               mongoerr.CommandNotSupported,
		`{"$out": {"db": "far", "coll": "c"}}`:                 mongoerr.CommandNotSupported,
		`{"$merge": {"into": {"db": "d", "coll": "split_0"}}}`: mongoerr.CommandNotSupported,
		`{"$merge": {"into": {"db": "oxbow", "coll": "x"}}}`:   mongoerr.Unauthorized,
	} {
		if code := run(`{"aggregate": "plain", "pipeline": [` + stage + `], "cursor": {}, "$db": "e"}`); code != want {
			t.Errorf("%s: %s, want %s", stage, code, want)
		}
	}
	for _, stage := range []string{`{"$out": "split_1"}`, `{"$merge": "split_0"}`, `{"$merge": {"into": "split_0"}}`} {
		if code := run(`{"aggregate": "plain", "pipeline": [` + stage + `], "cursor": {}, "$db": "d"}`); code != mongoerr.CommandNotSupported {
			t.Errorf("%s: %s", stage, code)
		}
	}
}
