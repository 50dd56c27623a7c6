package schedule

import (
	"slices"
	"time"
)

// Span is a stretch of time, its end not included.
type Span struct {
	Begin time.Time // zero: longer ago than a week
	End   time.Time // zero: never
}

// week is longer than any pattern of windows needs to repeat.
const week = 8 * 24 * time.Hour

// In reports whether now is inside.
func (ws Windows) In(now time.Time) bool {
	_, ok := ws.At(now)
	return ok
}

// At returns the span that now is in; false if it is in none. Windows that overlap or meet are one span.
func (ws Windows) At(now time.Time) (Span, bool) {
	if len(ws) == 0 {
		return Span{}, true
	}
	for _, s := range ws.spans(now) {
		if now.Before(s.Begin) || !now.Before(s.End) {
			continue
		}
		if now.Sub(s.Begin) > week {
			s.Begin = time.Time{}
		}
		if s.End.Sub(now) > week {
			s.End = time.Time{}
		}
		return s, true
	}
	return Span{}, false
}

// Next returns the first begin of a span after now; false if there is none, since it is always or never inside.
func (ws Windows) Next(now time.Time) (time.Time, bool) {
	for _, s := range ws.spans(now) {
		if s.Begin.After(now) {
			return s.Begin, true
		}
	}
	return time.Time{}, false
}

// spans returns the spans from more than a week before now to two after, in their order.
func (ws Windows) spans(now time.Time) []Span {
	var all []Span
	for _, w := range ws {
		y, m, d := now.In(w.zone).Date()
		for day := d - 9; day <= d+15; day++ {
			if s, ok := w.on(time.Date(y, m, day, 0, 0, 0, 0, time.UTC)); ok {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && !s.Begin.After(merged[n-1].End) {
			if s.End.After(merged[n-1].End) {
				merged[n-1].End = s.End
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// on returns the span of a window that begins on a day, which is given as its midnight in UTC; false if there is none.
func (w Window) on(day time.Time) (Span, bool) {
	if !w.days[day.Weekday()] {
		return Span{}, false
	}
	end := day
	if w.end <= w.begin {
		end = day.AddDate(0, 0, 1)
	}
	s := Span{Begin: w.first(day, w.begin), End: w.first(end, w.end)}
	return s, s.Begin.Before(s.End)
}

// first returns the first moment at which the clock shows a time of a day, or a later one where that time is skipped.
func (w Window) first(day time.Time, minutes int) time.Time {
	shown := day.Add(time.Duration(minutes) * time.Minute) // what the clock shows, as if it were in UTC
	t := shown.Add(-26 * time.Hour)                        // no zone is as far from UTC
	for {
		local := t.In(w.zone)
		_, offset := local.Zone()
		at := shown.Add(-time.Duration(offset) * time.Second)
		if at.Before(t) {
			at = t
		}
		_, until := local.ZoneBounds()
		if until.IsZero() || at.Before(until) {
			return at.In(w.zone)
		}
		t = until
	}
}
