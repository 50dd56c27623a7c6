package purge_test

import (
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/route"
)

// odd are documents whose time field holds what it should not, and one that is right.
var odd = []struct{ time, what string }{
	{`"time": 1767225600`, "a time before the cut"}, // 2026-01-01
	{``, "missing"},
	{`"time": null`, "null"},
	{`"time": "2026-01-01"`, "a string"},
	{`"time": [1767225600]`, "an array"},
	{`"time": [1767225600, 1767225601]`, "an array"},
	{`"time": {"$date": "2026-01-01T00:00:00Z"}`, "a date"},
	{`"time": 1767225600000`, "a time more than a year ahead: as s it may be in another unit"},
	{`"time": 1767225`, "a time before 1990-01-01: as s it may be in another unit"},
	{`"time": {"$oid": "6955b9000000000000000000"}`, "an ObjectId"},
	{`"time": true`, "of another type"},
}

func oddDocuments(t *testing.T) []bson.Document {
	var docs []bson.Document
	for i, o := range odd {
		text := `{"_id": "` + string(rune('a'+i)) + `"`
		if o.time != "" {
			text += ", " + o.time
		}
		docs = append(docs, bsontest.Doc(t, text+"}"))
	}
	return docs
}

// TestOddTimes: what the time field should not hold is counted, and stays.
func TestOddTimes(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		s := openStore(t)
		if indexed {
			s.index(t, `{"time": 1}`)
		}
		docs := oddDocuments(t)
		s.insert(t, docs...)
		p := purge.Predicate{Field: "time", Unit: route.Seconds, Age: time.Hour}
		c, err := purge.Look(t.Context(), purge.Target{Backend: s, Namespace: logs}, p, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{}
		for _, o := range odd {
			want[o.what]++
		}
		for _, h := range c.Held {
			if h.Count != want[h.What] || h.Goes != (h.What == odd[0].what) {
				t.Errorf("indexed %t: %d times %q (goes: %t), want %d", indexed, h.Count, h.What, h.Goes, want[h.What])
			}
			delete(want, h.What)
		}
		for what, n := range want {
			t.Errorf("indexed %t: nothing is told of %d times %q", indexed, n, what)
		}
		plan := purge.Weigh(c, purge.Assumptions{})
		if indexed && plan.Winner != purge.IDs || !indexed && plan.Winner != "" {
			t.Errorf("indexed %t: the winner is %q: %s", indexed, plan.Winner, plan.Reason)
		}
		if !indexed {
			continue
		}
		if _, err := finish(t.Context(), s.options(purge.IDs, p)); err != nil {
			t.Fatal(err)
		}
		wantSame(t, s.all(t), docs[1:])
	}
}

// TestWeigh: the strategy that keeps up with what arrives, and costs least, wins.
func TestWeigh(t *testing.T) {
	base := purge.Collection{
		Documents: 100_000_000, Bytes: 200e8, IndexBytes: 20e8, Cache: 8e9, Matches: 1_000_000, Arrival: 100, TimeField: "time", Keyed: "time_1", Reached: "time_1",
		Held: []purge.Held{{What: "a time before the cut", Count: 1_000_000, Goes: true}}, Entry: 115,
	}
	for _, test := range []struct {
		name   string
		change func(*purge.Collection)
		winner purge.Strategy
		keeps  bool
	}{
		{"parts", func(c *purge.Collection) { c.Parts = []purge.PartFacts{{Name: "a", Due: true}} }, purge.Drop, true},
		{"little arrives", func(c *purge.Collection) {}, purge.Slices, true},
		{"a lot is due", func(c *purge.Collection) { c.Matches = 100_000_000 }, purge.Ranges, true},
		{"a lot arrives", func(c *purge.Collection) { c.Arrival = 2000 }, purge.Ranges, true},
		{"too much arrives", func(c *purge.Collection) { c.Arrival = 7000 }, purge.Ranges, false},
		{"in memory", func(c *purge.Collection) { c.Arrival, c.Cache = 7000, 64e9 }, purge.Slices, true},
		{"no order", func(c *purge.Collection) { c.Keyed, c.Ordered = "", "no key" }, purge.IDs, true},
		{"no index", func(c *purge.Collection) { c.Keyed, c.Reached, c.Refused = "", "", "no index" }, "", false},
	} {
		c := base
		test.change(&c)
		plan := purge.Weigh(&c, purge.Assumptions{})
		if plan.Winner != test.winner {
			t.Errorf("%s: %q wins: %s; want %q", test.name, plan.Winner, plan.Reason, test.winner)
		}
		for _, e := range plan.Estimates {
			if e.Strategy == test.winner && *e.KeepsUp != test.keeps {
				t.Errorf("%s: it keeps up: %t", test.name, *e.KeepsUp)
			}
			if e.Strategy == purge.Ranges && e.Possible && e.Oplog != 115*c.Matches {
				t.Errorf("%s: %d bytes of oplog", test.name, e.Oplog)
			}
		}
	}
}
