package route

import "time"

// Cell returns the calendar cell around an instant: [start, end) in milliseconds since 1970, UTC.
//
// Cells of one zone follow one another without gap or overlap. Minutes and hours run on the zone's clock and are cut where it is changed, so
// an hour that the clocks go through twice is two cells. A day begins at the first instant at which the zone's calendar shows its
// date: where midnight is skipped at the first instant after it, and where clocks are put back over midnight the repeated minutes belong to the
// new day. A date that a zone skipped (Samoa, 2011-12-30) has no cell.
func (t *Time) Cell(ms int64) (start, end int64) {
	at := time.UnixMilli(ms).In(t.Zone)
	switch t.Every {
	case Minute:
		return clockCell(at, 60)
	case Hour:
		return clockCell(at, 60*60)
	}
	day := t.Every.first(dateOf(at))
	from := dayStart(day, t.Zone)
	for {
		day = t.Every.next(day)
		to := dayStart(day, t.Zone)
		if to > ms {
			return from, to
		}
		from = to
	}
}

// clockCell returns the cell of a number of seconds on the zone's clock, cut where the zone's offset changes.
func clockCell(at time.Time, seconds int64) (start, end int64) {
	_, offset := at.Zone()
	local := at.Unix() + int64(offset)
	from := local - floorMod(local, seconds) - int64(offset)
	to := from + seconds
	return cutFrom(at, from) * 1000, cutTo(at, to) * 1000
}

// cutFrom returns from, or the last instant after it and up to at where the zone's offset changed. ZoneBounds alone would not do: it also ends
// periods where the offset stays the same, such as at each new year, UTC, of a zone that changes its clocks by a yearly rule.
func cutFrom(at time.Time, from int64) int64 {
	_, offset := at.Zone()
	for {
		start, _ := at.ZoneBounds()
		if start.IsZero() || start.Unix() <= from {
			return from
		}
		at = start.Add(-time.Second)
		if _, before := at.Zone(); before != offset {
			return start.Unix()
		}
	}
}

// cutTo returns to, or the first instant before it and after at where the zone's offset changes.
func cutTo(at time.Time, to int64) int64 {
	_, offset := at.Zone()
	for {
		end := boundsEnd(at)
		if end.IsZero() || end.Unix() >= to {
			return to
		}
		if _, after := end.Zone(); after != offset {
			return end.Unix()
		}
		at = end
	}
}

// boundsEnd is the end of ZoneBounds, always after at. Where clocks change by a yearly rule, Go's time takes every year to have 365 days and gives
// for the last day of a leap year, UTC, an end that is not after it: the year's own end is meant (seen in Go 1.26, time.tzset).
func boundsEnd(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if end.IsZero() || end.After(at) {
		return end
	}
	return time.Date(at.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).In(at.Location())
}

// dateOf returns the calendar date that a zone's time shows, as midnight UTC.
func dateOf(at time.Time) time.Time {
	y, m, d := at.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// first returns the first date of the cell that a date lies in.
func (e Every) first(date time.Time) time.Time {
	switch e {
	case Week:
		return date.AddDate(0, 0, -(int(date.Weekday())+6)%7)
	case Month:
		return date.AddDate(0, 0, 1-date.Day())
	default:
		return date
	}
}

// next returns the first date of the next cell.
func (e Every) next(date time.Time) time.Time {
	switch e {
	case Week:
		return date.AddDate(0, 0, 7)
	case Month:
		return date.AddDate(0, 1, 0)
	default:
		return date.AddDate(0, 0, 1)
	}
}

// dayStart returns the first instant, in milliseconds, at which a zone shows a date (given as midnight UTC) or a later one.
func dayStart(date time.Time, zone *time.Location) int64 {
	midnight := date.Unix()
	// No zone was ever 24 hours from UTC, so no period that ended before this shows the date.
	at := time.Unix(midnight-24*60*60, 0).In(zone)
	for {
		_, offset := at.Zone()
		start, _ := at.ZoneBounds()
		end := boundsEnd(at)
		first := midnight - int64(offset)
		if !start.IsZero() {
			first = max(first, start.Unix())
		}
		if end.IsZero() || first < end.Unix() {
			return first * 1000
		}
		at = end
	}
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
