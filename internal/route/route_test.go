package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/query"
)

func filter(t testing.TB, text string) *query.Filter {
	t.Helper()
	f, err := query.ParseFilter(bsontest.Doc(t, text), query.Env{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// slots returns a table with a hash layout and all its partitions.
func slots(field string, count int) *Table {
	table := &Table{Layout: Layout{Hash: &Hash{Field: bson.ParsePath(field), Count: count}}}
	for i := range count {
		table.Partitions = append(table.Partitions, Partition{Slot: i, Start: MinTime, End: MaxTime, State: Active})
	}
	return table
}

// grid returns a table with days of January 2026 and slots.
func grid(count int, d ...int) *Table {
	table := days("time", Date)
	table.Layout.Hash = &Hash{Field: bson.ParsePath("uid"), Count: count}
	for _, d := range d {
		for i := range count {
			table.Partitions = append(table.Partitions, Partition{Slot: i, Start: day(d), End: day(d + 1), State: Active})
		}
	}
	return table
}

const d = `{"$date": "2026-01-%02dT%02d:00:00Z"}`

// dates fills the dates #dd and #dd.hh of January 2026 into a filter.
func dates(text string) string {
	for day := 1; day <= 31; day++ {
		text = strings.ReplaceAll(text, fmt.Sprintf("#%02d.12", day), fmt.Sprintf(d, day, 12))
		text = strings.ReplaceAll(text, fmt.Sprintf("#%02d", day), fmt.Sprintf(d, day, 0))
	}
	return text
}

func TestRouteByTime(t *testing.T) {
	table := days("time", Date, 10, 11, 12, 13, 20)
	all := []int{0, 1, 2, 3, 4}
	for _, c := range []struct {
		filter string
		want   []int
	}{
		{`{}`, all},
		{`{"other": 5}`, all},
		{`{"time": #11}`, []int{1}},
		{`{"time": #15}`, nil},
		{`{"time": {"$gte": #11, "$lt": #13}}`, []int{1, 2}},
		{`{"time": {"$gte": #11, "$lte": #13}}`, []int{1, 2, 3}},
		{`{"time": {"$gt": #11}}`, []int{1, 2, 3, 4}},
		{`{"time": {"$lt": #10}}`, nil},
		{`{"time": {"$gte": #12.12, "$lt": #12}}`, nil},
		{`{"time": {"$in": [#10, #13.12, #15, "x", null, 5]}}`, []int{0, 3}},
		{`{"time": {"$in": []}}`, nil},
		{`{"$or": [{"time": #10}, {"time": {"$gt": #14}}]}`, []int{0, 4}},
		{`{"$or": [{"time": #10}, {"other": 1}]}`, all},
		{`{"$and": [{"time": {"$gte": #11}}, {"$or": [{"time": {"$lt": #12}}, {"time": #20}]}]}`, []int{1, 4}},
		{`{"$nor": [{"time": {"$lt": #12}}, {"time": {"$gte": #13}}]}`, []int{2}},
		{`{"$nor": [{"time": {"$lt": #12}, "other": 1}]}`, all},
		{`{"time": {"$not": {"$gte": #11, "$lt": #13}}}`, []int{0, 3, 4}},
		{`{"time": {"$not": {"$gte": #11}}}`, []int{0}},
		{`{"time": {"$ne": #11}}`, all},
		{`{"time": {"$nin": [#11, #12]}}`, all},
		{`{"time": {"$exists": true}}`, all},
		{`{"time": {"$exists": false}}`, nil},
		{`{"time": {"$type": "date"}}`, all},
		{`{"time": {"$type": ["null", "string"]}}`, nil},
		{`{"time": {"$not": {"$type": "date"}}}`, nil},
		{`{"time": {"$not": {"$type": "string"}}}`, all},
		// Filters of other types: what is stored is always a date.
		{`{"time": null}`, nil},
		{`{"time": {"$ne": null}}`, all},
		{`{"time": "2026-01-11"}`, nil},
		{`{"time": {"$gt": "2026-01-11"}}`, nil},
		{`{"time": {"$not": {"$gt": "2026-01-11"}}}`, all},
		{`{"time": 1768089600000}`, nil},
		{`{"time": {"$gte": 1768089600000}}`, nil},
		{`{"time": {"$timestamp": {"t": 1768089600, "i": 0}}}`, nil},
		{`{"time": {"$gt": {"$minKey": 1}}}`, all},
		{`{"time": {"$lt": {"$maxKey": 1}}}`, all},
		{`{"time": [#11]}`, nil},
		{`{"time": {"$size": 1}}`, nil},
		{`{"time": {"$elemMatch": {"$gte": #11}}}`, nil},
		{`{"time": {"$all": [#11]}}`, []int{1}},
		{`{"time": {"$mod": [2, 0]}}`, nil},
		{`{"time": {"$regularExpression": {"pattern": "^2026", "options": ""}}}`, nil},
		{`{"time.x": 5}`, all},
		{`{"$expr": {"$and": [{"$gte": ["$time", #11]}, {"$lt": ["$time", #13]}]}}`, []int{1, 2}},
	} {
		if got := table.Route(filter(t, dates(c.filter))).Partitions; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.filter, got, c.want)
		}
	}
}

func TestRouteByNumbersAndIDs(t *testing.T) {
	for _, c := range []struct {
		unit   Unit
		filter string
		want   []int
	}{
		{Seconds, `{"time": 1768089600}`, []int{1}},
		{Seconds, `{"time": {"$numberDouble": "1768089600"}}`, []int{1}},
		{Seconds, `{"time": {"$numberDecimal": "1768089600.0"}}`, []int{1}},
		{Seconds, `{"time": 1768089599.5}`, nil},
		{Seconds, `{"time": {"$lt": 1768089599.5}}`, []int{0}},
		{Seconds, `{"time": {"$lte": 1768089600}}`, []int{0, 1}},
		{Seconds, `{"time": {"$lt": 1768089600}}`, []int{0}},
		{Seconds, `{"time": {"$lt": 1768089600.5}}`, []int{0, 1}},
		{Seconds, `{"time": {"$gt": 1768089599}}`, []int{1, 2}},
		{Seconds, `{"time": {"$gt": 1768089598.5}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$gte": 1768089599.5}}`, []int{1, 2}},
		{Seconds, `{"time": {"$not": {"$lt": 1768089599.5}}}`, []int{1, 2}},
		{Seconds, `{"time": {"$gt": {"$numberDouble": "-Infinity"}}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$lt": {"$numberDouble": "-Infinity"}}}`, nil},
		{Seconds, `{"time": {"$gt": {"$numberDouble": "Infinity"}}}`, nil},
		{Seconds, `{"time": {"$lt": {"$numberDecimal": "1E+6000"}}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$gt": -5}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$lt": 0}}`, nil},
		{Seconds, `{"time": {"$numberDouble": "NaN"}}`, nil},
		{Seconds, `{"time": {"$mod": [2, 0]}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$type": "number"}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$type": "int"}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$not": {"$type": "int"}}}`, []int{0, 1, 2}},
		{Seconds, `{"time": {"$not": {"$type": "number"}}}`, nil},
		{Seconds, `{"time": {"$gte": {"$date": "2026-01-11T00:00:00Z"}}}`, nil},
		{Milliseconds, `{"time": {"$gte": {"$numberLong": "1768089600000"}}}`, []int{1, 2}},
		{Milliseconds, `{"time": {"$lt": {"$numberLong": "1768089600001"}}}`, []int{0, 1}},
		{ObjectID, `{"time": {"$oid": "6962e8000000000000000000"}}`, []int{1}},
		{ObjectID, `{"time": {"$gte": {"$oid": "6962e8000000000000000000"}}}`, []int{1, 2}},
		{ObjectID, `{"time": {"$lt": {"$oid": "6962e7ff0000000000000000"}}}`, []int{0}},
		{ObjectID, `{"time": {"$gt": {"$oid": "6962e7ff0000000000000000"}}}`, []int{0, 1, 2}},
		{ObjectID, `{"time": {"$not": {"$gt": {"$oid": "6962e7ff0000000000000000"}}}}`, []int{0}},
	} {
		table := days("time", c.unit, 10, 11, 12)
		if got := table.Route(filter(t, c.filter)).Partitions; !slices.Equal(got, c.want) {
			t.Errorf("%s of %s: %v, want %v", c.filter, c.unit, got, c.want)
		}
	}
}

func TestRouteByHash(t *testing.T) {
	table := slots("a.uid", 8)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	null, err := table.Layout.Hash.Slot(bson.Null)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter string
		want   []int
	}{
		{`{}`, all},
		{`{"a.uid": 11}`, []int{3}},
		{`{"a.uid": {"$numberDecimal": "11.0"}}`, []int{3}},
		{`{"a.uid": {"$in": [1, 9, 2, -1, [3]]}}`, []int{1, 2, 7}},
		{`{"a.uid": {"$in": [1, {"$regularExpression": {"pattern": "^x", "options": ""}}]}}`, all},
		{`{"a.uid": {"$gt": 5}}`, all},
		{`{"a.uid": {"$ne": 5}}`, all},
		{`{"a.uid": [1]}`, nil},
		{`{"a.uid": null}`, []int{null}},
		{`{"a.uid": {"$exists": false}}`, []int{null}},
		{`{"a.uid": {"$not": {"$exists": true}}}`, []int{null}},
		{`{"a.uid": {"$exists": true}}`, all},
		{`{"a.uid": {"$type": "null"}}`, []int{null}},
		{`{"a.uid": {"$type": "array"}}`, nil},
		{`{"a.uid": {"$type": "string"}}`, all},
		{`{"a.uid": {"$elemMatch": {"$eq": 1}}}`, nil},
		{`{"a": {"uid": 11}}`, all},
		{`{"a": {"$elemMatch": {"uid": 11}}}`, all},
		{`{"$or": [{"a.uid": 1}, {"a.uid": 2, "x": 1}]}`, []int{1, 2}},
		{`{"$and": [{"a.uid": {"$in": [1, 2]}}, {"a.uid": {"$in": [2, 3]}}]}`, []int{2}},
		{`{"a.uid": 1, "$nor": [{"x": 1}]}`, []int{1}},
		{`{"$expr": {"$eq": ["$a.uid", 11]}}`, []int{3}},
		{`{"$nor": [{"$expr": {"$eq": ["$a.uid", 11]}}]}`, all},
	} {
		if got := table.Route(filter(t, c.filter)).Partitions; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.filter, got, c.want)
		}
	}
}

func TestRouteByBoth(t *testing.T) {
	table := grid(4, 10, 11, 12)
	for _, c := range []struct {
		filter string
		want   []int
		reason string
	}{
		{`{"uid": 1}`, []int{1, 5, 9}, "uid in slot 1: 3 of 12 partitions"},
		{`{"uid": {"$in": [1, 2]}, "time": {"$gte": #11}}`, []int{5, 6, 9, 10}, "time >= 2026-01-11, uid in 2 slots: 4 of 12 partitions"},
		{`{"time": {"$gte": #10, "$lt": #12}}`, []int{0, 1, 2, 3, 4, 5, 6, 7}, "time >= 2026-01-10 and < 2026-01-12: 8 of 12 partitions"},
		// Each alternative keeps its own pair.
		{`{"$or": [{"uid": 1, "time": #10}, {"uid": 2, "time": #11}]}`, []int{1, 6}, "time = 2026-01-10, uid in slot 1 or time = 2026-01-11, uid in slot 2: 2 of 12 partitions"},
		{`{"uid": 1, "time": "x"}`, nil, "no document that the layout of time and uid allows can match: 0 of 12 partitions"},
		{`{"x": 1}`, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "no condition that bounds time or uid: all 12 partitions"},
		{`{"time": {"$lte": #10.12}}`, []int{0, 1, 2, 3}, "time < 2026-01-10T12:00:00.001Z: 4 of 12 partitions"},
	} {
		got := table.Route(filter(t, dates(c.filter)))
		if !slices.Equal(got.Partitions, c.want) || got.Reason() != c.reason {
			t.Errorf("%s: %v, %q; want %v, %q", c.filter, got.Partitions, got.Reason(), c.want, c.reason)
		}
	}
}

func TestRouteToOnePlace(t *testing.T) {
	table := grid(4, 10, 12)
	again := grid(4, 10)
	again.Partitions = slices.Insert(again.Partitions, 2, again.Partitions[1])
	for _, c := range []struct {
		table  *Table
		filter string
		want   *Place
	}{
		{table, `{"uid": 1, "time": #10.12}`, &Place{Partition: 1, Slot: 1, Start: day(10), End: day(11)}},
		{table, `{"uid": 1, "time": #11.12}`, &Place{Partition: -1, Slot: 1, Start: day(11), End: day(12)}},
		{table, `{"uid": 1, "time": {"$gte": #12, "$lt": #13}}`, &Place{Partition: 5, Slot: 1, Start: day(12), End: day(13)}},
		{table, `{"uid": 1, "time": {"$gte": #12, "$lte": #13}}`, nil},
		{table, `{"uid": 1}`, nil},
		{table, `{"time": #10}`, nil},
		{table, `{"uid": 1, "time": "x"}`, nil},
		{table, `{"uid": {"$in": [1, 5]}, "time": {"$in": [#10, #10.12]}}`, &Place{Partition: 1, Slot: 1, Start: day(10), End: day(11)}},
		{table, `{"$or": [{"uid": 1, "time": #10}, {"uid": 1, "time": #11}]}`, nil},
		{slots("uid", 4), `{"uid": 7}`, &Place{Partition: 3, Slot: 3, Start: MinTime, End: MaxTime}},
		{slots("uid", 4), `{"uid": {"$in": [1, 2]}}`, nil},
		{again, `{"uid": 1, "time": #10}`, nil}, // two generations of one place
		{again, `{"uid": 0, "time": #10}`, &Place{Partition: 0, Slot: 0, Start: day(10), End: day(11)}},
		{&Table{Layout: Layout{Hash: &Hash{Field: bson.ParsePath("uid"), Count: 4}}}, `{"uid": 7}`, &Place{Partition: -1, Slot: 3, Start: MinTime, End: MaxTime}},
	} {
		got := c.table.Route(filter(t, dates(c.filter))).One
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.filter, got, c.want)
		}
	}
}

// Many alternatives lose precision, never partitions.
func TestRouteOfManyAlternatives(t *testing.T) {
	table := grid(4, 10, 11, 12)
	var or []string
	for i := range 200 {
		or = append(or, dates(fmt.Sprintf(`{"uid": %d, "time": #%02d}`, i%2, 10+i%3)))
	}
	got := table.Route(filter(t, `{"$or": [`+strings.Join(or, ",")+`]}`)).Partitions
	if want := []int{0, 1, 4, 5, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkRoute(b *testing.B) {
	minutes := &Table{Layout: Layout{Time: &Time{Field: bson.ParsePath("time"), Unit: Date, Every: Minute, Zone: time.UTC}}}
	for i := range 1000 {
		start := day(10) + int64(i)*60000
		minutes.Partitions = append(minutes.Partitions, Partition{Slot: -1, Start: start, End: start + 60000})
	}
	for _, c := range []struct {
		name   string
		table  *Table
		filter string
	}{
		{"slot of 64", slots("uid", 64), `{"uid": 77}`},
		{"minute of 1000", minutes, `{"time": #10.12}`},
		{"range of 1000", minutes, `{"time": {"$gte": #10, "$lt": #10.12}}`},
		{"both", grid(64, 10, 11, 12, 13, 14), `{"uid": 77, "time": #12.12}`},
	} {
		f := filter(b, dates(c.filter))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.table.Route(f)
			}
		})
	}
}
