package route

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/query"
)

// Where a look at a filter's bytes tells its place, Route gives the same place and its one partition.
func TestPointIsTheRoute(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		f := rapid.OneOf(equalities(table), equalities(table), equalities(table), filters(2)).Draw(t, "filter")
		place, ok := table.Point(f)
		if !ok {
			return
		}
		told++
		compiled, err := query.ParseFilter(f, query.Env{})
		if err != nil {
			t.Fatalf("%s has a place, and is refused: %v", f, err)
		}
		r := table.Route(compiled)
		if len(r.Partitions) != 1 || r.Partitions[0] != place.Partition || r.One == nil || *r.One != place {
			t.Fatalf("the place of %s is %+v, its route %v and one place %+v", f, place, r.Partitions, r.One)
		}
	})
	if told == 0 {
		t.Error("no filter had a place: the test shows nothing")
	}
}

// equalities generates filters that give a layout's fields values, and some other fields too.
func equalities(table *Table) *rapid.Generator[bson.Document] {
	return rapid.Custom(func(t *rapid.T) bson.Document {
		var elements [][]byte
		if l := table.Layout.Time; l != nil {
			isTime := func(v bson.Value) bool { _, err := l.Instant(v); return err == nil }
			v := rapid.OneOf(values().Filter(isTime), values()).Draw(t, "time")
			elements = append(elements, element(l.Field.String(), v))
		}
		if h := table.Layout.Hash; h != nil {
			elements = append(elements, element(h.Field.String(), values().Draw(t, "hashed")))
		}
		for range rapid.IntRange(0, 1).Draw(t, "others") {
			elements = append(elements, element(rapid.SampledFrom(fields).Draw(t, "field"), values().Draw(t, "value")))
		}
		return document(rapid.Permutation(elements).Draw(t, "filter")...).Data
	})
}

func TestPointLeavesToRoute(t *testing.T) {
	table := grid(4, 10, 12)
	again := grid(4, 10)
	again.Partitions = slices.Insert(again.Partitions, 2, again.Partitions[1])
	opening := grid(4, 10)
	opening.Partitions[1].Opening = true
	for _, c := range []struct {
		table  *Table
		filter string
		told   bool
	}{
		{table, `{"uid": 1, "time": #10.12}`, true},
		{table, `{"_id": "x", "time": #10, "uid": 1}`, true},
		{table, `{}`, false},
		{table, `{"uid": 1}`, false},
		{table, `{"time": #10}`, false},
		{table, `{"uid": 1, "time": "monday"}`, false},
		{table, `{"uid": 1, "time": #11}`, false}, // not made
		{table, `{"uid": {"$gt": 1}, "time": #10}`, false},
		{table, `{"uid": [1], "time": #10}`, false},
		{table, `{"uid": null, "time": #10}`, false},
		{table, `{"uid": 1, "time": #10, "x": {"$exists": true}}`, false},
		{table, `{"uid": 1, "time": #10, "$or": [{"x": 1}]}`, false},
		{again, `{"uid": 1, "time": #10}`, false}, // two generations
		{again, `{"uid": 2, "time": #10}`, true},
		{opening, `{"uid": 1, "time": #10}`, false},
		{opening, `{"uid": 2, "time": #10}`, true},
	} {
		place, told := c.table.Point(bsontest.Doc(t, dates(c.filter)))
		if told != c.told {
			t.Errorf("%s: %+v, %v", c.filter, place, told)
		}
	}
	twice := document(element("uid", bson.Int32(1).Value()), element("uid", bson.Int32(2).Value())).Data
	if place, told := slots("uid", 4).Point(twice); told {
		t.Errorf("%s: %+v", twice, place)
	}
}
