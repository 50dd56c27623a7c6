package command

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
)

// TestServersBehind: hello and the version are those of the weakest server behind, and the topology's version moves when that changes.
func TestServersBehind(t *testing.T) {
	var behind backend.Servers
	table := newTable(func(d *Deps) { d.Servers = func() backend.Servers { return behind } })
	counter := func() any {
		return sub(t, run(t, table, driver.D{{Key: "hello", Value: 1}}), "topologyVersion")["counter"]
	}
	for i, test := range []struct {
		behind  backend.Servers
		wire    int32
		msg     any
		version string
		counter int64
	}{
		{backend.Servers{}, 21, "isdbgrid", "7.0.14", 0},
		{backend.Servers{WireVersion: 25}, 21, "isdbgrid", "7.0.14", 0},
		{backend.Servers{WireVersion: 17}, 17, "isdbgrid", "6.0.0", 1},
		{backend.Servers{WireVersion: 14}, 14, "isdbgrid", "5.0.0", 2},
		{backend.Servers{WireVersion: 9, Standalone: true}, 9, nil, "4.4.0", 3},
		{backend.Servers{WireVersion: 8, Standalone: true}, 8, nil, "4.2.0", 4},
		{backend.Servers{WireVersion: 7}, 7, "isdbgrid", "4.2.0", 5},
	} {
		behind = test.behind
		hello := run(t, table, driver.D{{Key: "hello", Value: 1}})
		if hello["maxWireVersion"] != test.wire || hello["msg"] != test.msg {
			t.Errorf("%d: hello says %v %v", i, hello["maxWireVersion"], hello["msg"])
		}
		if got := counter(); got != test.counter {
			t.Errorf("%d: the counter is %v", i, got)
		}
		if got := run(t, table, driver.D{{Key: "buildInfo", Value: 1}})["version"]; got != test.version {
			t.Errorf("%d: the version is %v", i, got)
		}
	}
}
