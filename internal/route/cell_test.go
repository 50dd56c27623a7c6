package route

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// zones returns every zone of the Go distribution.
func zones(t *testing.T) []*time.Location {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("find the Go distribution: %v", err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatalf("open the zones: %v", err)
	}
	defer archive.Close()
	var list []*time.Location
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		zone, err := time.LoadLocation(f.Name)
		if err != nil {
			t.Fatalf("load zone %s: %v", f.Name, err)
		}
		list = append(list, zone)
	}
	if len(list) < 400 {
		t.Fatalf("only %d zones found", len(list))
	}
	return list
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t testing.TB, text string) int64 {
	t.Helper()
	tm, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return tm.UnixMilli()
}

func TestCell(t *testing.T) {
	for _, c := range []struct{ name, zone, instant, start, end string }{
		{"day", "UTC", "2001-01-15T23:59:59Z", "2001-01-15T00:00:00Z", "2001-01-16T00:00:00Z"},
		{"day", "Asia/Shanghai", "2017-06-05T15:59:59Z", "2017-06-04T16:00:00Z", "2017-06-05T16:00:00Z"},
		{"day", "UTC", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"},
		{"day", "UTC", "9999-12-31T23:59:59Z", "9999-12-31T00:00:00Z", "+"},
		// A day of 23 and one of 25 hours.
		{"day", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"day", "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		// Midnight does not exist: the clocks went from 00:00 to 01:00.
		{"day", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		// One minute past midnight the clocks went back to 23:01: the new day had begun.
		{"day", "America/St_Johns", "2006-10-29T02:45:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		// A date that does not exist.
		{"day", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		// A new year is no change of clocks, whatever the zone's rules begin with.
		{"hour", "America/St_Johns", "2026-01-01T00:00:00Z", "2025-12-31T23:30:00Z", "2026-01-01T00:30:00Z"},
		{"hour", "Australia/Adelaide", "2100-01-01T00:00:00Z", "2099-12-31T23:30:00Z", "2100-01-01T00:30:00Z"},
		{"week", "UTC", "2026-11-29T23:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"week", "UTC", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"month", "Asia/Tokyo", "2024-02-29T14:59:59Z", "2024-01-31T15:00:00Z", "2024-02-29T15:00:00Z"},
		{"month", "UTC", "2025-12-31T12:00:00Z", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"hour", "Asia/Kolkata", "2026-01-01T00:10:00Z", "2025-12-31T23:30:00Z", "2026-01-01T00:30:00Z"},
		// The hour from 01:00 happens twice.
		{"hour", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"},
		{"hour", "America/New_York", "2026-11-01T06:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"},
		// Clocks that move by half an hour.
		{"hour", "Australia/Lord_Howe", "2026-04-04T15:10:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"minute", "UTC", "2026-01-01T00:00:59Z", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
	} {
		every := map[string]Every{"minute": Minute, "hour": Hour, "day": Day, "week": Week, "month": Month}[c.name]
		l := Time{Every: every, Zone: zone(t, c.zone)}
		start, end := l.Cell(at(t, c.instant))
		wantEnd := start + 24*60*60*1000
		if c.end != "+" {
			wantEnd = at(t, c.end)
		}
		if start != at(t, c.start) || end != wantEnd {
			t.Errorf("%s of %s in %s: [%s, %s), want [%s, %s)", c.name, c.instant, c.zone, instantText(start), instantText(end), c.start, c.end)
		}
	}
}

// Cells of every zone hold their instants, are what every instant of theirs gives, and touch.
func TestCellsAreContiguous(t *testing.T) {
	all := zones(t)
	rapid.Check(t, func(t *rapid.T) {
		l := Time{
			Zone:  rapid.SampledFrom(all).Draw(t, "zone"),
			Every: rapid.SampledFrom([]Every{Minute, Hour, Day, Week, Month}).Draw(t, "every"),
		}
		ms := instants(l.Zone).Draw(t, "instant")
		start, end := l.Cell(ms)
		if start > ms || ms >= end {
			t.Fatalf("%s: [%d, %d) does not hold %d", l.Zone, start, end, ms)
		}
		inside := rapid.Int64Range(start, end-1).Draw(t, "inside")
		for _, other := range []int64{start, end - 1, inside} {
			if s, e := l.Cell(other); s != start || e != end {
				t.Fatalf("%s: %d gives [%d, %d), %d of the same cell gives [%d, %d)", l.Zone, ms, start, end, other, s, e)
			}
		}
		if s, _ := l.Cell(end); s != end {
			t.Fatalf("%s: after [%d, %d) comes a cell from %d", l.Zone, start, end, s)
		}
		if _, e := l.Cell(start - 1); e != start {
			t.Fatalf("%s: before [%d, %d) comes a cell until %d", l.Zone, start, end, e)
		}
		longest := map[Every]time.Duration{Minute: time.Minute, Hour: time.Hour, Day: 49 * time.Hour, Week: 8 * 24 * time.Hour, Month: 33 * 24 * time.Hour}
		if d := time.Duration(end-start) * time.Millisecond; d > longest[l.Every] {
			t.Fatalf("%s: a cell of %s lasts %s", l.Zone, []string{"a minute", "an hour", "a day", "a week", "a month"}[l.Every], d)
		}
	})
}

// instants generates instants from 1900 until after 9999, half of them close to a change of a zone's clocks.
func instants(zone *time.Location) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		ms := rapid.Int64Range(-2208988800000, maxInstant+400*24*3600*1000).Draw(t, "ms")
		if rapid.Bool().Draw(t, "recent") {
			ms = rapid.Int64Range(0, 4102444800000).Draw(t, "recent ms")
		}
		if rapid.Bool().Draw(t, "near a change") {
			if start, _ := time.UnixMilli(ms).In(zone).ZoneBounds(); !start.IsZero() {
				ms = start.UnixMilli() + rapid.Int64Range(-90000000, 90000000).Draw(t, "distance")
			}
		}
		return ms
	})
}

// TestCellOnTheLastDayOfALeapYear: of this day, in zones that change their clocks by a yearly rule, Go's time gives a period that does not
// hold it; cells are found all the same, and are those of any other day.
func TestCellOnTheLastDayOfALeapYear(t *testing.T) {
	for _, c := range []struct {
		zone           string
		every          Every
		at, start, end string
	}{
		// Zone files may list the changes of the years up to 2037, so these lie behind.
		{"America/New_York", Day, "2040-12-31T12:30:00Z", "2040-12-31T05:00:00Z", "2041-01-01T05:00:00Z"},
		{"America/New_York", Day, "2041-01-01T04:59:59Z", "2040-12-31T05:00:00Z", "2041-01-01T05:00:00Z"},
		{"America/New_York", Hour, "2040-12-31T12:30:00Z", "2040-12-31T12:00:00Z", "2040-12-31T13:00:00Z"},
		{"America/New_York", Minute, "2040-12-31T23:59:30Z", "2040-12-31T23:59:00Z", "2041-01-01T00:00:00Z"},
		{"Europe/Berlin", Day, "2024-12-31T22:59:59Z", "2024-12-30T23:00:00Z", "2024-12-31T23:00:00Z"},
		{"Europe/Berlin", Month, "2040-12-31T12:30:00Z", "2040-11-30T23:00:00Z", "2040-12-31T23:00:00Z"},
		{"Australia/Sydney", Week, "2040-12-31T12:30:00Z", "2040-12-30T13:00:00Z", "2041-01-06T13:00:00Z"},
		{"Australia/Sydney", Hour, "2040-12-31T12:30:00Z", "2040-12-31T12:00:00Z", "2040-12-31T13:00:00Z"},
	} {
		l := &Time{Zone: zone(t, c.zone), Every: c.every}
		start, end := l.Cell(at(t, c.at))
		if start != at(t, c.start) || end != at(t, c.end) {
			t.Errorf("the cell of %s in %s, every %d: [%s, %s), want [%s, %s)", c.at, c.zone, c.every, instantText(start), instantText(end), c.start, c.end)
		}
	}
}
