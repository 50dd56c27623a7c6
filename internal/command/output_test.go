package command_test

import (
	"testing"

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
	if code, _ := g.Code(t, "d", `{"create": "split"}`); code != 0 {
		t.Fatalf("create: %s", code)
	}
	for stage, want := range map[string]mongoerr.Code{
		`{"$out": {"db": "d", "coll": "split_1"}}`:             mongoerr.CommandNotSupported,
		`{"$out": {"db": "d", "coll": "split"}}`:               mongoerr.CommandNotSupported,
		`{"$out": {"db": "far", "coll": "c"}}`:                 mongoerr.CommandNotSupported,
		`{"$merge": {"into": {"db": "d", "coll": "split_0"}}}`: mongoerr.CommandNotSupported,
		`{"$merge": {"into": {"db": "oxbow", "coll": "x"}}}`:   mongoerr.Unauthorized,
	} {
		if code, _ := g.Code(t, "e", `{"aggregate": "plain", "pipeline": [`+stage+`], "cursor": {}}`); code != want {
			t.Errorf("%s: %s, want %s", stage, code, want)
		}
	}
	for _, stage := range []string{`{"$out": "split_1"}`, `{"$merge": "split_0"}`, `{"$merge": {"into": "split_0"}}`} {
		if code, _ := g.Code(t, "d", `{"aggregate": "plain", "pipeline": [`+stage+`], "cursor": {}}`); code != mongoerr.CommandNotSupported {
			t.Errorf("%s: %s", stage, code)
		}
	}
}
