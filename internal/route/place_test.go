package route

import (
	"strings"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

func TestPlaceByTime(t *testing.T) {
	table := days("time", Date, 10, 11, 13)
	now := day(11) + 3600000
	for _, c := range []struct {
		doc        string
		partition  int
		start, end int64
	}{
		{`{"time": {"$date": "2026-01-10T00:00:00Z"}}`, 0, day(10), day(11)},
		{`{"time": {"$date": "2026-01-10T23:59:59.999Z"}}`, 0, day(10), day(11)},
		{`{"time": {"$date": "2026-01-11T00:00:00Z"}}`, 1, day(11), day(12)},
		{`{"time": {"$date": "2026-01-12T12:00:00Z"}}`, -1, day(12), day(13)},
		{`{"time": {"$date": "2026-01-13T12:00:00Z"}}`, 2, day(13), day(14)},
		{`{"time": {"$date": "2001-01-01T12:00:00Z"}}`, -1, at(t, "2001-01-01T00:00:00Z"), at(t, "2001-01-02T00:00:00Z")},
	} {
		p, err := table.Place(bsontest.Doc(t, c.doc), now)
		if want := (Place{Partition: c.partition, Slot: -1, Start: c.start, End: c.end}); err != nil || p != want {
			t.Errorf("%s: %+v, %v; want %+v", c.doc, p, err, want)
		}
	}
}

// A new cell ends where what is stored begins, also when the stored ranges are another layout's.
func TestPlaceIsCutByNeighbours(t *testing.T) {
	table := days("time", Date, 10, 13)
	table.Layout.Time.Every = Week // Monday 2026-01-05, 2026-01-12
	p, err := table.Place(bsontest.Doc(t, `{"time": {"$date": "2026-01-11T12:00:00Z"}}`), day(12))
	if want := (Place{Partition: -1, Slot: -1, Start: day(11), End: day(12)}); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
	p, err = table.Place(bsontest.Doc(t, `{"time": {"$date": "2026-01-12T12:00:00Z"}}`), day(12))
	if want := (Place{Partition: -1, Slot: -1, Start: day(12), End: day(13)}); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
}

func TestPlaceByHashAndTime(t *testing.T) {
	table := &Table{Layout: Layout{
		Time: &Time{Field: bson.ParsePath("t.at"), Unit: Seconds, Every: Day, Zone: time.UTC},
		Hash: &Hash{Field: bson.ParsePath("uid"), Count: 4},
	}}
	for d := 10; d < 12; d++ {
		for slot := range 4 {
			if d == 11 && slot == 2 {
				continue // cut short by a crash
			}
			table.Partitions = append(table.Partitions, Partition{Slot: slot, Start: day(d), End: day(d + 1), Generation: 1})
			if d == 10 && slot == 1 {
				table.Partitions = append(table.Partitions, Partition{Slot: slot, Start: day(d), End: day(d + 1), Generation: 2})
			}
		}
	}
	now := day(11)
	for doc, want := range map[string]Place{
		`{"uid": 4, "t": {"at": 1768003200}}`:  {Partition: 0, Slot: 0, Start: day(10), End: day(11)},
		`{"uid": 5, "t": {"at": 1768003200}}`:  {Partition: 2, Slot: 1, Start: day(10), End: day(11)},
		`{"uid": -1, "t": {"at": 1768003200}}`: {Partition: 4, Slot: 3, Start: day(10), End: day(11)},
		`{"uid": 3, "t": {"at": 1768089600}}`:  {Partition: 7, Slot: 3, Start: day(11), End: day(12)},
		`{"uid": 2, "t": {"at": 1768089600}}`:  {Partition: -1, Slot: 2, Start: day(11), End: day(12)},
	} {
		if p, err := table.Place(bsontest.Doc(t, doc), now); err != nil || p != want {
			t.Errorf("%s: %+v, %v; want %+v", doc, p, err, want)
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	now := day(11) + 3600000
	late := days("time", Date, 10, 11)
	late.Layout.Time.Keep = 24 * time.Hour
	ms := days("time", Milliseconds)
	ms.Layout.Time.Keep = 24 * time.Hour
	hash := &Table{Layout: Layout{Hash: &Hash{Field: bson.ParsePath("a.uid"), Count: 4}}}
	for _, c := range []struct {
		table *Table
		doc   string
		code  mongoerr.Code
		says  string
	}{
		{late, `{"x": 1}`, mongoerr.ShardKeyNotFound, "'time'"},
		{late, `{"time": null}`, mongoerr.BadValue, "null"},
		{late, `{"time": "now"}`, mongoerr.BadValue, "a string"},
		{late, `{"time": [{"$date": "2026-01-11T00:00:00Z"}]}`, mongoerr.BadValue, "array"},
		{days("t.at", Date), `{"t": [{"at": {"$date": "2026-01-11T00:00:00Z"}}]}`, mongoerr.BadValue, "array"},
		{days("t.at", Date), `{"t": 1}`, mongoerr.ShardKeyNotFound, "'t.at'"},
		{late, `{"time": {"$date": "2026-01-14T00:00:00Z"}}`, mongoerr.BadValue, "at or after 2026-01-14"},
		{late, `{"time": {"$date": "2026-01-09T00:00:00Z"}}`, mongoerr.BadValue, "late"},
		{ms, `{"time": 1768089600}`, mongoerr.BadValue, "looks like seconds"},
		{ms, `{"time": {"$numberLong": "1768089600000000"}}`, mongoerr.BadValue, "looks like microseconds"},
		{hash, `{"a": {"uid": [1]}}`, mongoerr.TypeMismatch, "'a.uid'"},
		{hash, `{"a": [{"uid": 1}]}`, mongoerr.TypeMismatch, "'a.uid'"},
	} {
		p, err := c.table.Place(bsontest.Doc(t, c.doc), now)
		if !mongoerr.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v; want %s with %q", c.doc, p, err, c.code, c.says)
		}
	}
	// The last partition that may be made, the last that is not late, and a late one that is still there.
	for _, text := range []string{"2026-01-13T23:59:59Z", "2026-01-10T00:00:00Z"} {
		if _, err := late.Place(bsontest.Doc(t, `{"time": {"$date": "`+text+`"}}`), now); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if p, err := late.Place(bsontest.Doc(t, `{"time": {"$date": "2026-01-10T00:00:00Z"}}`), day(20)); err != nil || p.Partition != 0 {
		t.Errorf("late, but not hidden yet: %+v, %v", p, err)
	}
	late.Layout.Time.Late = Recreate
	if p, err := late.Place(bsontest.Doc(t, `{"time": {"$date": "2026-01-01T00:00:00Z"}}`), now); err != nil || p.Partition != -1 || p.Start != day(1) {
		t.Errorf("late, to be made again: %+v, %v", p, err)
	}
}
