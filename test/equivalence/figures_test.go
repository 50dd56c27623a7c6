package equivalence

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/test/inprocess"
)

// The size of a collection in a client's scale is that of all its partitions, not of their parts rounded down.
func TestScaledSizes(t *testing.T) {
	g := inprocess.Open(t, "backends: {a: {embedded: a}}\ncollections:\n  test.c: {hash: {field: _id, count: 4}}\n")
	var docs bson.A
	for i := range 40 { // 14 bytes each, ten in a partition
		docs = append(docs, d("_id", i))
	}
	must(t, g, "test", "insert", "c", "documents", docs)
	got := must(t, g, "test", "collStats", "c", "scale", 100)
	for name, want := range map[string]any{"size": int32(5), "avgObjSize": 14.0, "count": int32(40), "scaleFactor": int32(100)} {
		if field(got, name) != want {
			t.Errorf("560 bytes in hundreds: %s is %v", name, field(got, name))
		}
	}
}
