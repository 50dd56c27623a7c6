package query

import (
	"encoding/binary"
	"math"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// millisOf is how date operators see a value: dates, the second of a timestamp and of an ObjectId.
func millisOf(v bson.Value) (int64, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return intOf(v), nil
	case bson.TypeTimestamp:
		return timestampSeconds(v) * 1000, nil
	case bson.TypeObjectID:
		return int64(binary.BigEndian.Uint32(v.Data)) * 1000, nil
	}
	return 0, mongoerr.New(16006, "can't convert from BSON type %s to Date", bson.TypeName(v.Type))
}

// timeIn returns an instant on the calendar of a zone.
func timeIn(millis int64, zone *time.Location) time.Time { return time.UnixMilli(millis).In(zone) }

// datePartNode is $year, $month and the like.
type datePartNode struct {
	date, zone node // zone nil: UTC
	part       func(time.Time) int
	wide       bool // the result is an int64, as MongoDB has it for $isoWeekYear
}

func (n *datePartNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.date.eval(s)
	if err != nil {
		return v, err
	}
	zone, null, err := s.zone(n.zone)
	if err != nil || null || nullish(v) {
		return bson.Null, err
	}
	millis, err := millisOf(v)
	if err != nil {
		return v, err
	}
	i := n.part(timeIn(millis, zone))
	if n.wide {
		return s.int64(int64(i)), nil
	}
	return s.int32(int32(i)), nil
}

func datePart(part func(time.Time) int) builder { return datePartOf(part, false) }

func datePartOf(part func(time.Time) int, wide bool) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		n := &datePartNode{part: part, wide: wide}
		if key, _, ok := bson.First(arg.Data); arg.Type == bson.TypeDocument && (!ok || key[:min(1, len(key))] != "$") {
			args, err := params(arg, nil, func(f string) error {
				return mongoerr.New(40535, "unrecognized option to %s: \"%s\"", name, f)
			}, "date", "timezone")
			if err != nil {
				return nil, err
			}
			if err := c.optionals(args, map[string]*node{"date": &n.date, "timezone": &n.zone}); err != nil {
				return nil, err
			}
			if n.date == nil {
				return nil, mongoerr.New(40539, "missing 'date' argument to %s, provided: %s", name, show(arg))
			}
			return n, nil
		}
		if arg.Type == bson.TypeArray {
			if count := countElements(arg.Data); count != 1 {
				return nil, mongoerr.New(40536, "%s accepts exactly one argument if given an array, but was given %d", name, count)
			}
			arg = elementAt(arg.Data, 0)
		}
		of, err := c.compile(arg)
		n.date = of
		return n, err
	}
}

// weekOfYear counts weeks that begin on Sunday; days before the first Sunday are in week 0.
func weekOfYear(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

func isoWeek(t time.Time) int {
	_, week := t.ISOWeek()
	return week
}

func isoYear(t time.Time) int {
	year, _ := t.ISOWeek()
	return year
}

// isoDay counts from Monday, 1, to Sunday, 7.
func isoDay(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func milliOfSecond(t time.Time) int { return t.Nanosecond() / int(time.Millisecond) }

// dateToPartsNode is $dateToParts.
type dateToPartsNode struct{ date, zone, iso node }

func (n *dateToPartsNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.date.eval(s)
	if err != nil {
		return v, err
	}
	zone, null, err := s.zone(n.zone)
	if err != nil || null {
		return bson.Null, err
	}
	iso := valueFalse
	if n.iso != nil {
		if iso, err = n.iso.eval(s); err != nil || nullish(iso) {
			return bson.Null, err
		}
		if iso.Type != bson.TypeBoolean {
			return iso, mongoerr.New(40521, "iso8601 must evaluate to a bool, found %s", bson.TypeName(iso.Type))
		}
	}
	if nullish(v) {
		return bson.Null, nil
	}
	millis, err := millisOf(v)
	if err != nil {
		return v, err
	}
	t := timeIn(millis, zone)
	names := []string{"year", "month", "day", "hour", "minute", "second", "millisecond"}
	parts := []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), milliOfSecond(t)}
	if Truth(iso) {
		copy(names, []string{"isoWeekYear", "isoWeek", "isoDayOfWeek"})
		copy(parts, []int{isoYear(t), isoWeek(t), isoDay(t)})
	}
	fields := make([]field, len(names))
	for i := range names {
		fields[i] = field{names[i], s.int32(int32(parts[i]))}
	}
	return s.document(fields)
}

func buildDateToParts(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(40524, "$dateToParts only supports an object as its argument"), func(f string) error {
		return mongoerr.New(40520, "Unrecognized argument to $dateToParts: %s", f)
	}, "date", "timezone", "iso8601")
	if err != nil {
		return nil, err
	}
	n := &dateToPartsNode{}
	if err := c.optionals(args, map[string]*node{"date": &n.date, "timezone": &n.zone, "iso8601": &n.iso}); err != nil {
		return nil, err
	}
	if n.date == nil {
		return nil, mongoerr.New(40522, "Missing 'date' parameter to $dateToParts")
	}
	return n, nil
}

// dateFromPartsNode is $dateFromParts; the parts are in the order of datePartNames, nil where not given.
type dateFromPartsNode struct {
	parts [len(datePartNames)]node
	iso   bool
	zone  node
}

// datePartNames are $dateFromParts' arguments: those of the calendar, those of ISO weeks, those of the time of day.
var datePartNames = [...]string{"year", "month", "day", "isoWeekYear", "isoWeek", "isoDayOfWeek", "hour", "minute", "second", "millisecond"}

// datePartDefaults are the values of parts not given.
var datePartDefaults = [...]int64{1970, 1, 1, 1970, 1, 1, 0, 0, 0, 0}

// maxDatePart bounds every part but years, seconds and milliseconds.
const maxDatePart = 1<<15 - 1

func (n *dateFromPartsNode) eval(s *Scratch) (bson.Value, error) {
	p := datePartDefaults
	for i, of := range n.parts {
		if of == nil {
			continue
		}
		v, err := of.eval(s)
		if err != nil || nullish(v) {
			return bson.Null, err
		}
		if p[i], err = datePartValue(datePartNames[i], v); err != nil {
			return v, err
		}
	}
	zone, null, err := s.zone(n.zone)
	if err != nil || null {
		return bson.Null, err
	}
	year, month, day := p[0], p[1], p[2]
	if n.iso {
		year, month, day = isoCalendar(p[3], p[4], p[5])
	}
	t := time.Date(int(year), time.Month(month), int(day), int(p[6]), int(p[7]), 0, 0, zone)
	if p[8] > math.MaxInt64/4000 || p[8] < math.MinInt64/4000 || p[9] > math.MaxInt64/4 || p[9] < math.MinInt64/4 {
		return bson.Null, mongoerr.New(mongoerr.DurationOverflow, "Overflow casting from a lower-precision duration to a higher-precision duration")
	}
	return s.date(t.UnixMilli() + p[8]*1000 + p[9]), nil
}

func datePartValue(name string, v bson.Value) (int64, error) {
	i, ok := wholeNumber(v)
	if !ok {
		return 0, mongoerr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, bson.TypeName(v.Type), show(v))
	}
	switch name {
	case "second", "millisecond":
	case "year", "isoWeekYear":
		if i < 1 || i > 9999 {
			code := mongoerr.Code(40523)
			if name == "isoWeekYear" {
				code = 31095
			}
			return 0, mongoerr.New(code, "'%s' must evaluate to an integer in the range 1 to 9999, found %d", name, i)
		}
	default:
		if i < -maxDatePart-1 || i > maxDatePart {
			return 0, mongoerr.New(31034, "'%s' must evaluate to a value in the range [%d, %d]; value %d is not in range", name, -maxDatePart-1, maxDatePart, i)
		}
	}
	return i, nil
}

// isoCalendar gives the day of an ISO week as a year, the month January and a day counted from its first, which may be outside of it.
func isoCalendar(year, week, day int64) (y, month, d int64) {
	fourth := time.Date(int(year), time.January, 4, 0, 0, 0, 0, time.UTC) // always in week 1
	monday := int64(4 - (isoDay(fourth) - 1))
	return year, 1, monday + (week-1)*7 + day - 1
}

func buildDateFromParts(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(40519, "$dateFromParts only supports an object as its argument"), func(f string) error {
		return mongoerr.New(40518, "Unrecognized argument to $dateFromParts: %s", f)
	}, append([]string{"timezone"}, datePartNames[:]...)...)
	if err != nil {
		return nil, err
	}
	n := &dateFromPartsNode{}
	into := map[string]*node{"timezone": &n.zone}
	for i, name := range datePartNames {
		into[name] = &n.parts[i]
	}
	if err := c.optionals(args, into); err != nil {
		return nil, err
	}
	n.iso = n.parts[3] != nil
	switch {
	case n.parts[0] == nil && !n.iso:
		return nil, mongoerr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	case n.parts[0] != nil && (n.iso || n.parts[4] != nil || n.parts[5] != nil):
		return nil, mongoerr.New(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
	case n.iso && (n.parts[1] != nil || n.parts[2] != nil):
		return nil, mongoerr.New(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
	}
	return n, nil
}
