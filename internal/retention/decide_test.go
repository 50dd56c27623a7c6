package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oxbow/internal/route"
)

func day(d int) int64 { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC).UnixMilli() }

func layout(keep time.Duration, ahead int) route.Layout {
	return route.Layout{Time: &route.Time{Every: route.Day, Zone: time.UTC, Keep: keep, Ahead: ahead}}
}

// partition reads "8", "8 hidden 12" (since day 12), "8 restored".
func partition(text string) route.Partition {
	p := route.Partition{Slot: -1, State: route.Active}
	var d, since int
	var state string
	if n, err := fmt.Sscan(text, &d, &state, &since); n == 0 {
		panic(err)
	}
	p.Collection = fmt.Sprint("c", d)
	p.Start, p.End, p.Since = day(d), day(d+1), day(max(since, 1))
	switch state {
	case "hidden":
		p.State = route.Hidden
	case "restored":
		p.Restored = true
	case "creating":
		p.State = route.Creating
	case "dropping":
		p.State = route.Dropping
	}
	return p
}

// days shows partitions by the days they begin on.
func days[T any](list []T, start func(T) int64) string {
	var text []string
	for _, p := range list {
		text = append(text, fmt.Sprint(time.UnixMilli(start(p)).UTC().Day()))
	}
	return strings.Join(text, " ")
}

func startOf(p route.Partition) int64 { return p.Start }

func TestDecide(t *testing.T) {
	const d24 = 24 * time.Hour
	for _, c := range []struct {
		name             string
		now              int64
		keep, hold       time.Duration
		ahead, max       int
		confirmed        string // days
		partitions       string // by commas
		make, hide, drop string
		stop             string
	}{
		{name: "nothing there", now: day(10), keep: d24, ahead: 2},
		{name: "ahead", now: day(10) + 5, ahead: 2, partitions: "10", make: "11 12"},
		{name: "the range before is enough", now: day(11) + 5, ahead: 1, partitions: "10", make: "11 12"},
		{name: "history is not being filled", now: day(20), ahead: 2, partitions: "10,11"},
		{name: "a hidden current range is made again", now: day(10) + 5, ahead: 0, partitions: "9,10 hidden 10", make: "10"},
		{name: "cut short", now: day(10) + 5, ahead: 1, partitions: "10,11 creating", make: "11"},
		{name: "kept for ever", now: day(20), partitions: "1,2"},
		{name: "the end is exactly keep ago", now: day(10), keep: 3 * d24, partitions: "6", hide: "6"},
		{name: "a millisecond before", now: day(10) - 1, keep: 3 * d24, partitions: "6"},
		{name: "oldest first", now: day(10), keep: d24, partitions: "5,6,7,8", hide: "5 6 7 8"},
		{name: "restored by hand", now: day(10), keep: d24, partitions: "5 restored,6", hide: "6"},
		{name: "held", now: day(10), keep: d24, hold: d24, partitions: "5 hidden 9,6 hidden 10", drop: "5"},
		{name: "hold of nothing", now: day(10), keep: d24, partitions: "5 hidden 10", drop: "5"},
		{name: "hidden by hand, not expired", now: day(10), keep: 9 * d24, partitions: "5 hidden 5"},
		{name: "the rest is the sweep's", now: day(10), keep: d24, partitions: "5 creating,6 dropping"},
		{name: "too many", now: day(10), keep: d24, max: 3, partitions: "4 hidden 5,5,6,7", stop: "4 time ranges are due at once, more than 3"},
		{name: "too many, confirmed", now: day(10), keep: d24, max: 3, confirmed: "4 5 6 7", partitions: "4 hidden 5,5,6,7", hide: "5 6 7", drop: "4"},
		{name: "some of them confirmed", now: day(10), keep: d24, max: 3, confirmed: "4", partitions: "4 hidden 5,5,6,7", hide: "5 6 7", drop: "4"},
		{name: "too many others confirmed", now: day(10), keep: d24, max: 1, confirmed: "4 5", partitions: "4 hidden 5,5,6,7", stop: "2 time ranges are due at once, more than 1"},
		{name: "confirmed and not due", now: day(10), keep: 9 * d24, max: 1, confirmed: "4 5", partitions: "4 hidden 5,5"},
		{name: "as many as may be", now: day(10), keep: d24, max: 3, partitions: "5,6,7", hide: "5 6 7"},
	} {
		in := Input{Now: c.now, Layout: layout(c.keep, c.ahead), Hold: c.hold, MaxDue: c.max, Confirmed: map[string]bool{}}
		for text := range strings.SplitSeq(c.partitions, ",") {
			if text != "" {
				in.Partitions = append(in.Partitions, partition(text))
			}
		}
		for text := range strings.FieldsSeq(c.confirmed) {
			in.Confirmed[partition(text).Name()] = true
		}
		d := Decide(in)
		made := days(d.Make, func(p route.Place) int64 { return p.Start })
		hide, drop := days(d.Hide, startOf), days(d.Drop, startOf)
		// Where a case says nothing of keep and max, only partitions ahead are looked at.
		if made != c.make && c.make != "" || hide != c.hide || drop != c.drop || (c.stop == "") != (d.Stop == "") || !strings.HasPrefix(d.Stop, c.stop) {
			t.Errorf("%s: make %q, hide %q, drop %q, stop %q", c.name, made, hide, drop, d.Stop)
		}
		if c.make == "" && c.ahead > 0 && made != "" {
			t.Errorf("%s: make %q", c.name, made)
		}
		if waiting := len(d.Waiting); (waiting > 0) != (c.stop != "") || waiting > 0 && waiting != len(in.Partitions) {
			t.Errorf("%s: %d wait", c.name, waiting)
		}
		if want := len(strings.Fields(c.confirmed)); c.name != "confirmed and not due" && len(d.Confirmed) != want || c.name == "confirmed and not due" && len(d.Confirmed) != 0 {
			t.Errorf("%s: still confirmed: %v", c.name, d.Confirmed)
		}
	}
}

// Slots count as one range, and a range that lacks one is made.
func TestDecideWithSlots(t *testing.T) {
	in := Input{Now: day(10), Layout: layout(24*time.Hour, 0), MaxDue: 1}
	in.Layout.Hash = &route.Hash{Count: 2}
	for _, d := range []int{5, 10} {
		for slot := range 2 {
			p := partition(fmt.Sprint(d))
			p.Slot = slot
			in.Partitions = append(in.Partitions, p)
		}
	}
	if d := Decide(in); d.Stop != "" || len(d.Hide) != 2 || len(d.Make) != 0 {
		t.Errorf("%+v", d)
	}
	in.Partitions = in.Partitions[:3]
	if d := Decide(in); len(d.Make) != 1 || d.Make[0].Start != day(10) {
		t.Errorf("%+v", d)
	}
}

// Whatever there is: nothing young is hidden, nothing is dropped that was not hidden for hold, and what is decided is decided once, oldest first.
func TestDecideNeverDestroysTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Now:    day(1) + rapid.Int64Range(0, 30*86400000).Draw(t, "now"),
			Layout: layout(time.Duration(rapid.IntRange(0, 200).Draw(t, "keep hours"))*time.Hour, rapid.IntRange(0, 3).Draw(t, "ahead")),
			Hold:   time.Duration(rapid.IntRange(0, 50).Draw(t, "hold hours")) * time.Hour,
			MaxDue: rapid.IntRange(0, 10).Draw(t, "limit"),
		}
		for d := 1; d < 28; d++ {
			if rapid.Bool().Draw(t, "there") {
				p := partition(fmt.Sprint(d))
				p.State = route.State(rapid.IntRange(0, 3).Draw(t, "state"))
				p.Since = day(1) + rapid.Int64Range(0, 30*86400000).Draw(t, "since")
				p.Restored = rapid.IntRange(0, 4).Draw(t, "restored") == 0
				in.Partitions = append(in.Partitions, p)
			}
		}
		d := Decide(in)
		keep := in.Layout.Time.Keep.Milliseconds()
		for _, p := range slices.Concat(d.Hide, d.Drop) {
			if keep == 0 || p.End > in.Now-keep {
				t.Fatalf("%+v is due at %d with keep %d", p, in.Now, keep)
			}
		}
		for _, p := range d.Hide {
			if p.State != route.Active || p.Restored {
				t.Fatalf("%+v is to be hidden", p)
			}
		}
		for _, p := range d.Drop {
			if p.State != route.Hidden || in.Now-p.Since < in.Hold.Milliseconds() {
				t.Fatalf("%+v is to be dropped at %d with hold %s", p, in.Now, in.Hold)
			}
		}
		if n := len(d.Hide) + len(d.Drop); d.Stop != "" && n > 0 || in.MaxDue > 0 && n > in.MaxDue {
			t.Fatalf("%d are due with the limit %d, stop %q", n, in.MaxDue, d.Stop)
		}
		for _, list := range [][]route.Partition{d.Hide, d.Drop} {
			if !slices.IsSortedFunc(list, func(a, b route.Partition) int { return int(a.Start/86400000 - b.Start/86400000) }) {
				t.Fatalf("%v is not oldest first", list)
			}
		}
	})
}

// Once what is decided for now is done, there is nothing to do until what Next says, and then there may be.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Now:    day(1) + rapid.Int64Range(0, 30*86400000).Draw(t, "now"),
			Layout: layout(time.Duration(rapid.IntRange(0, 200).Draw(t, "keep hours"))*time.Hour, rapid.IntRange(0, 3).Draw(t, "ahead")),
			Hold:   time.Duration(rapid.IntRange(0, 50).Draw(t, "hold hours")) * time.Hour,
		}
		for d := 1; d < 28; d++ {
			if rapid.Bool().Draw(t, "there") {
				p := partition(fmt.Sprint(d))
				p.State = rapid.SampledFrom([]route.State{route.Active, route.Hidden}).Draw(t, "state")
				p.Since = day(1) + rapid.Int64Range(0, in.Now-day(1)).Draw(t, "since")
				p.Restored = p.State == route.Active && rapid.IntRange(0, 4).Draw(t, "restored") == 0
				in.Partitions = append(in.Partitions, p)
			}
		}
		nothing := func() bool {
			d := Decide(in)
			return len(d.Make)+len(d.Hide)+len(d.Drop) == 0
		}
		in = done(in, Decide(in))
		next, ok := Next(in)
		if !ok {
			in.Now += rapid.Int64Range(0, 400*86400000).Draw(t, "later")
			if !nothing() {
				t.Fatalf("nothing was to come, and at %d there is %+v", in.Now, Decide(in))
			}
			return
		}
		if next > in.Now {
			in.Now = rapid.Int64Range(in.Now, next-1).Draw(t, "before")
			if !nothing() {
				t.Fatalf("before %d, at %d, there is %+v", next, in.Now, Decide(in))
			}
			in.Now = next
		}
		// At the start of a range nothing may be lacking.
		if start, _ := in.Layout.Time.Cell(next); nothing() && start != next {
			t.Fatalf("nothing to do at %d", next)
		}
	})
}

// done is what is there when a decision has been carried out.
func done(in Input, d Decision) Input {
	var left []route.Partition
	for _, p := range in.Partitions {
		if slices.ContainsFunc(d.Hide, func(o route.Partition) bool { return o.Name() == p.Name() }) {
			p.State, p.Since = route.Hidden, in.Now
		}
		if !slices.ContainsFunc(d.Drop, func(o route.Partition) bool { return o.Name() == p.Name() }) {
			left = append(left, p)
		}
	}
	for i, m := range d.Make {
		left = append(left, route.Partition{Collection: fmt.Sprint("made", i), Slot: -1, Start: m.Start, End: m.End, State: route.Active})
	}
	slices.SortStableFunc(left, func(a, b route.Partition) int { return cmp.Compare(a.Start, b.Start) })
	in.Partitions = left
	return in
}

func TestNow(t *testing.T) {
	since := Reading{Wall: day(10), Monotonic: time.Hour}
	for _, c := range []struct {
		name string
		then Reading
		now  int64
		stop string
	}{
		{"time passes", Reading{Wall: day(11), Monotonic: 25 * time.Hour}, day(11), ""},
		{"the backend is behind", Reading{Wall: day(11), Backend: day(10), Monotonic: 25 * time.Hour}, day(10), ""},
		{"the backend is ahead", Reading{Wall: day(11), Backend: day(12), Monotonic: 25 * time.Hour}, day(11), ""},
		{"a correction", Reading{Wall: day(10) + 30_000, Monotonic: time.Hour}, day(10) + 30_000, ""},
		{"a jump ahead", Reading{Wall: day(12), Monotonic: time.Hour + time.Second}, day(12), "the clock jumped by 47h59m59s: it moved by 48h0m0s while 1s passed"},
		{"a jump back", Reading{Wall: day(9), Monotonic: time.Hour}, day(9), "the clock jumped by -24h0m0s"},
		{"a long time", Reading{Wall: day(30) + 5*60_000, Monotonic: 481 * time.Hour}, day(30) + 5*60_000, ""},
	} {
		now, stop := Now(since, c.then)
		if now != c.now || (stop == "") != (c.stop == "") || !strings.HasPrefix(stop, c.stop) {
			t.Errorf("%s: %d, %q", c.name, now, stop)
		}
	}
}
