package equivalence

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// The size of a collection in a client's scale is that of all its partitions, not of their parts rounded down.
func TestScaledSizes(t *testing.T) {
	g := inprocess.Open(t, "backends: {a: {embedded: a}}\ncollections:\n  test.c: {hash: {field: _id, count: 4}}\n")
	run := func(command bson.D) bson.M {
		body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "test"}))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := g.Run(t.Context(), &backend.Request{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		var m bson.M
		if err := bson.Unmarshal(reply, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	var docs bson.A
	for i := range 40 { // 14 bytes each, ten in a partition
		docs = append(docs, d("_id", i))
	}
	run(d("insert", "c", "documents", docs))
	got := run(d("collStats", "c", "scale", 100))
	if got["size"] != int32(5) || got["avgObjSize"] != 14.0 || got["count"] != int32(40) || got["scaleFactor"] != int64(100) {
		t.Errorf("560 bytes in hundreds: %v", got)
	}
}
