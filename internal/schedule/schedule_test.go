package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func windows(t *testing.T, texts ...string) Windows {
	t.Helper()
	ws, err := ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "it has no time",
		"mon-fri":                       "it has no time",
		"monday 10:00-12:00":            `"monday" is no day`,
		"mon-xyz 10:00-12:00":           `"mon-xyz" is no day`,
		"22:00":                         "is not a begin and an end",
		"22:00-25:00":                   `"25:00" is no time`,
		"22:60-23:00":                   `"22:60" is no time`,
		"22:0-23:00":                    `"22:0" is no time`,
		"-1:00-02:00":                   `"" is no time`,
		"22:00-24:01":                   `"24:01" is no time`,
		"24:00-02:00":                   "24:00 is an end only",
		"08:00-08:00":                   "begins and ends at 08:00",
		"22:00-08:00 Asia/Nowhere":      `no zone "Asia/Nowhere"`,
		"22:00-08:00 Local":             `no zone "Local"`,
		"22:00-08:00 UTC and":           `"and" is too much`,
		"mon,,tue 22:00-08:00":          `"" is no day`,
		"9999999999999999999:00-1:00":   "is no time",
		"mon-fri-sat 22:00-08:00 UTC":   `"mon-fri-sat" is no day`,
		"22:00-08:00 ../../etc/passwd ": "no zone",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		name, windows, now string
		begin, end         string // "": not inside; "-": not bounded
		next               string
	}{
		{"inside", "22:00-08:00 Asia/Shanghai", "2026-03-01T15:00:00Z", "2026-03-01T14:00:00Z", "2026-03-02T00:00:00Z", "2026-03-02T14:00:00Z"},
		{"the begin is inside", "22:00-08:00", "2026-03-01T22:00:00Z", "2026-03-01T22:00:00Z", "2026-03-02T08:00:00Z", "2026-03-02T22:00:00Z"},
		{"the end is not", "22:00-08:00", "2026-03-02T08:00:00Z", "", "", "2026-03-02T22:00:00Z"},
		{"a night of the day before", "fri 22:00-06:00", "2026-02-28T05:00:00Z", "2026-02-27T22:00:00Z", "2026-02-28T06:00:00Z", "2026-03-06T22:00:00Z"},
		{"another day", "fri 22:00-06:00", "2026-02-28T23:00:00Z", "", "", "2026-03-06T22:00:00Z"},
		{"over the end of the week", "sat-mon 10:00-11:00", "2026-03-01T10:30:00Z", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-02T10:00:00Z"},
		{"windows that meet are one", "20:00-22:00; 22:00-23:00", "2026-03-01T21:00:00Z", "2026-03-01T20:00:00Z", "2026-03-01T23:00:00Z", "2026-03-02T20:00:00Z"},
		{"windows that overlap are one", "20:00-22:30; 22:00-23:00 UTC", "2026-03-01T21:00:00Z", "2026-03-01T20:00:00Z", "2026-03-01T23:00:00Z", "2026-03-02T20:00:00Z"},
		{"a weekend", "sat 00:00-24:00; sun 00:00-24:00", "2026-02-28T12:00:00Z", "2026-02-28T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-07T00:00:00Z"},
		{"always", "00:00-24:00", "2026-02-28T12:00:00Z", "-", "-", ""},
		{"none", "", "2026-02-28T12:00:00Z", "-", "-", ""},
		{"leap day", "22:00-04:00", "2028-02-29T01:00:00Z", "2028-02-28T22:00:00Z", "2028-02-29T04:00:00Z", "2028-02-29T22:00:00Z"},
		{"leap night", "tue 22:00-04:00", "2028-03-01T01:00:00Z", "2028-02-29T22:00:00Z", "2028-03-01T04:00:00Z", "2028-03-07T22:00:00Z"},
		// Berlin, 29 March 2026: 02:00 CET is 03:00 CEST, 01:00 UTC. 25 October: 03:00 CEST is 02:00 CET, 01:00 UTC.
		{"a shorter night", "22:00-06:00 Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z", "2026-03-29T20:00:00Z"},
		{"a longer night", "22:00-06:00 Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-24T20:00:00Z", "2026-10-25T05:00:00Z", "2026-10-25T21:00:00Z"},
		{"a begin that is skipped", "02:30-04:00 Europe/Berlin", "2026-03-29T01:10:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", "2026-03-30T00:30:00Z"},
		{"an end that is skipped", "01:00-02:30 Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T23:00:00Z"},
		{"a window that is skipped", "02:10-02:50 Europe/Berlin", "2026-03-29T00:59:00Z", "", "", "2026-03-30T00:10:00Z"},
		{"a begin that comes twice", "02:30-04:00 Europe/Berlin", "2026-10-25T00:40:00Z", "2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z", "2026-10-26T01:30:00Z"},
		{"an end that comes twice", "01:00-02:30 Europe/Berlin", "2026-10-25T01:10:00Z", "", "", "2026-10-26T00:00:00Z"},
		{"a window that comes twice", "02:10-02:50 Europe/Berlin", "2026-10-25T00:00:00Z", "", "", "2026-10-25T00:10:00Z"},
		{"a window that came before", "02:10-02:50 Europe/Berlin", "2026-10-25T01:20:00Z", "", "", "2026-10-26T01:10:00Z"},
		// Samoa had no 30 December 2011.
		{"a day that is skipped", "fri 10:00-12:00 Pacific/Apia", "2011-12-30T09:00:00Z", "", "", "2012-01-05T20:00:00Z"},
	} {
		var ws Windows
		if c.windows != "" {
			ws = windows(t, strings.Split(c.windows, "; ")...)
		}
		now := at(t, c.now)
		s, in := ws.At(now)
		if in != (c.begin != "") || in && (shown(s.Begin) != c.begin || shown(s.End) != c.end) {
			t.Errorf("%s: %t, from %s to %s", c.name, in, shown(s.Begin), shown(s.End))
		}
		next, ok := ws.Next(now)
		if ok != (c.next != "") || ok && shown(next) != c.next {
			t.Errorf("%s: the next is %s", c.name, shown(next))
		}
	}
}

func shown(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// TestAsTheClockShows compares with a clock that is looked at every minute.
func TestAsTheClockShows(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "America/St_Johns", "Africa/Casablanca", "Pacific/Chatham"}
	changes := []time.Time{at(t, "2026-03-29T01:00:00Z"), at(t, "2026-10-25T01:00:00Z"), at(t, "2026-03-08T07:00:00Z"), at(t, "2026-11-01T06:00:00Z"), at(t, "2028-02-29T00:00:00Z"), at(t, "2026-04-04T15:00:00Z"), at(t, "2026-07-01T00:00:00Z")}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		begin, end := rapid.IntRange(0, 1439).Draw(t, "begin"), rapid.IntRange(1, 1440).Draw(t, "end")
		if begin == end {
			end--
		}
		if begin == end || end == 0 {
			return
		}
		days := rapid.SampledFrom([]string{"", "mon-fri ", "sat,sun ", "sun-mon ", "wed "}).Draw(t, "days")
		text := fmt.Sprintf("%s%02d:%02d-%02d:%02d %s", days, begin/60, begin%60, end/60, end%60, zone)
		w, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		now := rapid.SampledFrom(changes).Draw(t, "change").Add(time.Duration(rapid.IntRange(-2880, 2880).Draw(t, "minutes")) * time.Minute)
		want := looked(w, now)
		if got := (Windows{w}).In(now); got != want {
			t.Fatalf("%s at %s (%s): %t, the clock says %t", text, shown(now), now.In(w.zone).Format("Mon 15:04"), got, want)
		}
		// What is inside stays so until the end, and comes again with the next begin.
		if s, ok := (Windows{w}).At(now); ok && !s.End.IsZero() && ((Windows{w}).In(s.End) || !(Windows{w}).In(s.End.Add(-time.Nanosecond)) || !(Windows{w}).In(s.Begin)) {
			t.Fatalf("%s: the span of %s is from %s to %s", text, shown(now), shown(s.Begin), shown(s.End))
		}
		if next, ok := (Windows{w}).Next(now); ok && (!(Windows{w}).In(next) || !next.After(now)) {
			t.Fatalf("%s: after %s the next begin is %s, which is not inside", text, shown(now), shown(next))
		}
	})
}

// looked looks at the clock minute by minute: a window of a day is inside from the first minute at which the clock shows its begin or later, to that of its end.
func looked(w Window, now time.Time) bool {
	y, m, d := now.In(w.zone).Date()
	for day := d - 2; day <= d+1; day++ {
		date := time.Date(y, m, day, 0, 0, 0, 0, time.UTC)
		if !w.days[date.Weekday()] {
			continue
		}
		begin, end := date.Add(time.Duration(w.begin)*time.Minute), date.Add(time.Duration(w.end)*time.Minute)
		if w.end <= w.begin {
			end = end.AddDate(0, 0, 1)
		}
		begun, ended := false, false
		for at := now.Add(-5 * 24 * time.Hour); !at.After(now); at = at.Add(time.Minute) {
			local := at.In(w.zone)
			face := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
			begun, ended = begun || !face.Before(begin), ended || !face.Before(end)
		}
		if begun && !ended {
			return true
		}
	}
	return false
}
