package route

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/query"
)

// The contract of routing: where a document was placed is in the route of every filter that matches it.
func TestRoutingIsSound(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		f := filters(3).Draw(t, "filter")
		compiled, err := query.ParseFilter(f, query.Env{})
		if err != nil {
			return // what can't be sent can't be routed
		}
		r := table.Route(compiled)
		for range 25 {
			doc := documents(table).Draw(t, "document")
			place, err := table.Place(doc, day(20))
			if err != nil {
				continue // no such document can be stored
			}
			match, err := compiled.Match(doc)
			if err != nil || !match {
				continue
			}
			matched++
			if place.Partition >= 0 && !slices.Contains(r.Partitions, place.Partition) {
				t.Fatalf("%s matches %s of partition %d, which is not in %v (%s)", f, doc, place.Partition, r.Partitions, r.Reason())
			}
			if r.One != nil && (r.One.Slot != place.Slot || r.One.Start != place.Start || r.One.End != place.End) {
				t.Fatalf("%s matches %s, whose place %+v is not the one place %+v", f, doc, place, *r.One)
			}
		}
	})
	if matched < 20 && !testing.Short() { // there a fifth of the checks may happen to match none
		t.Errorf("only %d documents matched their filters: the test shows nothing", matched)
	}
}

// tables generates tables of each layout, with gaps and second generations.
func tables() *rapid.Generator[*Table] {
	return rapid.Custom(func(t *rapid.T) *Table {
		table := &Table{}
		kind := rapid.IntRange(1, 3).Draw(t, "layout")
		if kind&1 != 0 {
			table.Layout.Time = &Time{
				Field: bson.ParsePath(rapid.SampledFrom([]string{"a", "b.c"}).Draw(t, "time field")),
				Unit:  rapid.SampledFrom([]Unit{Date, Seconds, Milliseconds, ObjectID}).Draw(t, "unit"),
				Every: Day, Zone: time.UTC, Ahead: 1000,
			}
		}
		if kind&2 != 0 {
			table.Layout.Hash = &Hash{
				Field: bson.ParsePath(rapid.SampledFrom([]string{"d", "b.d", "a"}).Draw(t, "hash field")),
				Count: rapid.IntRange(1, 5).Draw(t, "count"),
			}
		}
		starts, ends := []int64{MinTime}, []int64{MaxTime}
		if table.Layout.Time != nil {
			starts, ends = nil, nil
			for d := 8; d < 16; d++ {
				if rapid.IntRange(0, 3).Draw(t, "made") > 0 {
					starts, ends = append(starts, day(d)), append(ends, day(d+1))
				}
			}
		}
		slots := []int{-1}
		if h := table.Layout.Hash; h != nil {
			slots = slices.Clone(consecutive(0, h.Count))
		}
		for i := range starts {
			for _, slot := range slots {
				for g := range rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 0, 2}).Draw(t, "generations") {
					table.Partitions = append(table.Partitions, Partition{Slot: slot, Start: starts[i], End: ends[i], Generation: g + 1})
				}
			}
		}
		return table
	})
}

// fields are the paths that documents and filters use: those of the layouts, their parents and children.
var fields = []string{"a", "b", "b.c", "b.d", "d", "d.x", "a.0", "e"}

// values generates what meets the tables: times of every unit around January 2026, small numbers, and values of all types.
func values() *rapid.Generator[bson.Value] {
	return rapid.Custom(func(t *rapid.T) bson.Value {
		ms := day(8) + rapid.Int64Range(-1, 16*4).Draw(t, "quarter")*86400000/4 + rapid.Int64Range(-1, 1).Draw(t, "next")
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0, 1:
			return bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, ms)}
		case 2:
			return bson.Int64(ms).Value()
		case 3:
			return bson.Int64(ms / 1000).Value()
		case 4:
			return bson.Double(float64(ms) / 1000).Value()
		case 5:
			return bson.Int64(ms / 1000).Decimal().Value()
		case 6:
			id := [12]byte{byte(ms / 1000 >> 24), byte(ms / 1000 >> 16), byte(ms / 1000 >> 8), byte(ms / 1000), 11: rapid.Byte().Draw(t, "id")}
			return bson.Value{Type: bson.TypeObjectID, Data: id[:]}
		case 7, 8:
			return bson.Int32(rapid.Int32Range(-6, 6).Draw(t, "small")).Value()
		case 9:
			return bson.Null
		default:
			return bsontest.Values(1).Draw(t, "any value")
		}
	})
}

// documents generates documents that a table mostly takes, with other types and arrays among them.
func documents(table *Table) *rapid.Generator[bson.Document] {
	return rapid.Custom(func(t *rapid.T) bson.Document {
		field := func(key string) []byte {
			if rapid.IntRange(0, 5).Draw(t, key+" is missing") == 0 {
				return nil
			}
			return element(key, values().Draw(t, key))
		}
		b := element("b", document(field("c"), field("d")))
		if rapid.IntRange(0, 9).Draw(t, "b is another value") == 0 {
			b = element("b", values().Draw(t, "b"))
		}
		return document(field("a"), b, field("d"), field("e")).Data
	})
}

// filters generates filter documents nested at most depth times.
func filters(depth int) *rapid.Generator[bson.Document] {
	return rapid.Custom(func(t *rapid.T) bson.Document {
		var parts [][]byte
		for range rapid.IntRange(1, 2).Draw(t, "parts") {
			switch k := rapid.IntRange(0, 9).Draw(t, "part"); {
			case k < 3 && depth > 0:
				op := []string{"$and", "$or", "$nor"}[k]
				parts = append(parts, element(op, array(filters(depth-1), 3).Draw(t, op)))
			case k == 3:
				parts = append(parts, element("$expr", expressions().Draw(t, "$expr")))
			default:
				parts = append(parts, predicates().Draw(t, "predicate"))
			}
		}
		return document(parts...).Data
	})
}

// predicates generates one element of a filter.
func predicates() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		path := rapid.SampledFrom(fields).Draw(t, "path")
		if rapid.IntRange(0, 3).Draw(t, "plain") == 0 {
			return element(path, values().Draw(t, "value"))
		}
		ops := document(operators().Draw(t, "operator"), operators().Draw(t, "operator"))
		if rapid.IntRange(0, 4).Draw(t, "$not") == 0 {
			ops = document(element("$not", ops))
		}
		return element(path, ops)
	})
}

func operators() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		op := rapid.SampledFrom([]string{"$eq", "$lt", "$lte", "$gt", "$gte", "$gte", "$ne", "$in", "$nin", "$exists", "$type", "$size", "$mod", "$elemMatch", "$all"}).Draw(t, "op")
		switch op {
		case "$in", "$nin", "$all":
			return element(op, list(rapid.SliceOfN(values(), 0, 3).Draw(t, op)))
		case "$exists":
			return element(op, bson.Value{Type: bson.TypeBoolean, Data: []byte{byte(rapid.IntRange(0, 1).Draw(t, op))}})
		case "$type":
			return element(op, bson.Int32(rapid.SampledFrom([]int32{1, 2, 3, 4, 6, 7, 9, 10, 16, 18, 19}).Draw(t, op)).Value())
		case "$size":
			return element(op, bson.Int32(1).Value())
		case "$mod":
			return element(op, list([]bson.Value{bson.Int32(2).Value(), bson.Int32(0).Value()}))
		case "$elemMatch":
			return element(op, document(element("$gte", values().Draw(t, op))))
		default:
			return element(op, values().Draw(t, op))
		}
	})
}

// expressions generates comparisons of a path and a constant, either side first, alone or under $and.
func expressions() *rapid.Generator[bson.Value] {
	return rapid.Custom(func(t *rapid.T) bson.Value {
		comparison := func() bson.Value {
			op := rapid.SampledFrom([]string{"$eq", "$lt", "$lte", "$gt", "$gte", "$ne"}).Draw(t, "op")
			sides := []bson.Value{
				{Type: bson.TypeString, Data: bsoncore.AppendString(nil, "$"+rapid.SampledFrom(fields).Draw(t, "path"))},
				document(element("$literal", values().Draw(t, "constant"))),
			}
			if rapid.Bool().Draw(t, "constant first") {
				slices.Reverse(sides)
			}
			return document(element(op, list(sides)))
		}
		if rapid.Bool().Draw(t, "alone") {
			return comparison()
		}
		return document(element("$and", list([]bson.Value{comparison(), comparison()})))
	})
}

func element(key string, v bson.Value) []byte {
	return append(bsoncore.AppendHeader(nil, v.Type, key), v.Data...)
}

func document(elements ...[]byte) bson.Value {
	at, doc := bsoncore.AppendDocumentStart(nil)
	for _, e := range elements {
		doc = append(doc, e...)
	}
	doc, _ = bsoncore.AppendDocumentEnd(doc, at)
	return bson.Value{Type: bson.TypeDocument, Data: doc}
}

func list(values []bson.Value) bson.Value {
	var elements [][]byte
	for i, v := range values {
		elements = append(elements, element(fmt.Sprint(i), v))
	}
	return bson.Value{Type: bson.TypeArray, Data: document(elements...).Data}
}

// array generates arrays of one to most documents.
func array(of *rapid.Generator[bson.Document], most int) *rapid.Generator[bson.Value] {
	return rapid.Map(rapid.SliceOfN(of, 1, most), func(docs []bson.Document) bson.Value {
		var values []bson.Value
		for _, d := range docs {
			values = append(values, bson.Value{Type: bson.TypeDocument, Data: d})
		}
		return list(values)
	})
}
