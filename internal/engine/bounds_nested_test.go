package engine

import (
	"context"
	"testing"
)

// TestElementsOfNumberedArray: an index that has an array and one of its places finds what lies in an array at that place.
func TestElementsOfNumberedArray(t *testing.T) {
	docs := []string{`{"_id": 0, "a": [[1]]}`, `{"_id": 1, "a": [1]}`, `{"_id": 2, "a": [[2]]}`}
	table := tableOf(t, memoryDB(t, nil), []string{`{"key": {"a.0": -1, "a": 1}, "name": "places"}`}, docs)
	n, err := table.Count(context.Background(), Query{Filter: filterOf(t, `{"a.0": {"$elemMatch": {"$gte": 1, "$lt": 2}}}`)})
	if err != nil || n != 1 {
		t.Errorf("%d documents, %v", n, err)
	}
}
