package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"oxbow/internal/route"
)

func TestPhysicalName(t *testing.T) {
	cfg := parsed(t, `
collections:
  fla.minute: {time: {field: t, every: minute, zone: America/New_York}}
  fla.hour:   {time: {field: t, every: hour}}
  fla.day:    {time: {field: t, every: day, zone: Asia/Shanghai}}
  fla.week:   {time: {field: t, every: week}}
  fla.month:  {time: {field: t, every: month}}
  fla.old:    {time: {field: t, every: day}, name: "{collection}{yymmdd}"}
  fla.slots:  {hash: {field: u}}
  fla.both:   {time: {field: t, every: day}, hash: {field: u}}
  fla.dbs:    {time: {field: t, every: day, as: database}}
  fla.dbs2:   {time: {field: t, every: day, as: database}, hash: {field: u}, name: "db{yyyymmdd}"}
`)
	for _, c := range []struct {
		collection string
		slot       int
		start      string
		generation int
		want       string
	}{
		{"fla.minute", -1, "2026-07-01T04:05:00Z", 1, "fla.minute_202607010005"},
		// 01:05 in New York happens twice.
		{"fla.minute", -1, "2026-11-01T05:05:00Z", 1, "fla.minute_202611010105"},
		{"fla.minute", -1, "2026-11-01T06:05:00Z", 1, "fla.minute_202611010105r"},
		{"fla.minute", -1, "2026-11-01T07:05:00Z", 1, "fla.minute_202611010205"},
		{"fla.hour", -1, "2026-07-01T04:00:00Z", 1, "fla.hour_2026070104"},
		{"fla.day", -1, "2017-06-04T16:00:00Z", 1, "fla.day_20170605"},
		{"fla.day", -1, "2017-06-04T16:00:00Z", 3, "fla.day_20170605_3"},
		{"fla.week", -1, "2026-11-30T00:00:00Z", 1, "fla.week_20261130"},
		{"fla.month", -1, "2026-11-01T00:00:00Z", 1, "fla.month_202611"},
		{"fla.old", -1, "2017-06-05T00:00:00Z", 1, "fla.old170605"},
		{"fla.old", -1, "1999-06-05T00:00:00Z", 1, "fla.old19990605"},
		{"fla.slots", 63, "", 1, "fla.slots_63"},
		{"fla.slots", 0, "", 2, "fla.slots_0_2"},
		{"fla.both", 7, "2017-06-05T00:00:00Z", 1, "fla.both_20170605_7"},
		{"fla.dbs", -1, "2017-06-05T00:00:00Z", 1, "fla_20170605.dbs"},
		{"fla.dbs", -1, "2017-06-05T00:00:00Z", 2, "fla_20170605_2.dbs"},
		{"fla.dbs2", 5, "2017-06-05T00:00:00Z", 1, "db20170605.dbs2_5"},
	} {
		start := route.MinTime
		if c.start != "" {
			at, err := time.Parse(time.RFC3339, c.start)
			if err != nil {
				t.Fatal(err)
			}
			start = at.UnixMilli()
		}
		database, collection := cfg.Collection(c.collection).PhysicalName(c.slot, start, c.generation)
		if got := database + "." + collection; got != c.want {
			t.Errorf("%s, slot %d, %s, generation %d: %s, want %s", c.collection, c.slot, c.start, c.generation, got, c.want)
		}
	}
}

// Neighbouring cells never share a name, over changes of clocks too.
func TestNeighboursHaveDifferentNames(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll", "Asia/Tehran"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		l := &route.Time{Zone: zone, Every: rapid.SampledFrom([]route.Every{route.Minute, route.Hour, route.Day, route.Week, route.Month}).Draw(t, "every")}
		c := Collection{Database: "a", Name: "b", Layout: route.Layout{Time: l}}
		if c.Template, err = newTemplate(defaultTemplate(c.Layout, c.As), "a", "b", c.Layout, c.As); err != nil {
			t.Fatal(err)
		}
		ms := rapid.Int64Range(0, 4102444800000).Draw(t, "ms")
		if since, _ := time.UnixMilli(ms).In(zone).ZoneBounds(); !since.IsZero() && rapid.Bool().Draw(t, "near a change") {
			ms = since.UnixMilli() - rapid.Int64Range(0, 3*3600*1000).Draw(t, "before")
		}
		seen := map[string]int64{}
		for range 200 {
			start, end := l.Cell(ms)
			_, name := c.PhysicalName(-1, start, 1)
			if other, taken := seen[name]; taken {
				t.Fatalf("%s names the cells from %d and from %d", name, other, start)
			}
			seen[name] = start
			ms = end
		}
	})
}
