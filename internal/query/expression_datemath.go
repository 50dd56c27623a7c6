package query

import (
	"math"
	"math/bits"
	"strings"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// unit is a unit of time of $dateTrunc, $dateAdd, $dateSubtract and $dateDiff.
type unit uint8

const (
	unitMillisecond unit = iota
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitQuarter
	unitYear
)

var unitNames = [...]string{"millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}

// unitMillis is the length of the units that have one on every calendar.
var unitMillis = [...]int64{1, 1000, 60 * 1000, 3600 * 1000}

const dayMillis = 24 * 3600 * 1000

func unitOf(operator string, v bson.Value) (unit, error) {
	if v.Type != bson.TypeString {
		return 0, mongoerr.New(5439013, "%s requires 'unit' to be a string, but got %s", operator, bson.TypeName(v.Type))
	}
	name := textOf(v)
	for i, n := range unitNames {
		if n == name {
			return unit(i), nil
		}
	}
	return 0, mongoerr.New(mongoerr.FailedToParse, "unknown time unit value: %s", name)
}

func weekdayOf(operator string, v bson.Value) (time.Weekday, error) {
	if v.Type != bson.TypeString {
		return 0, mongoerr.New(5439015, "%s requires 'startOfWeek' to be a string, but got %s", operator, bson.TypeName(v.Type))
	}
	name := strings.ToLower(textOf(v))
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); name == full || name == full[:3] {
			return d, nil
		}
	}
	return 0, mongoerr.New(5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %s", operator, textOf(v))
}

// dateMathNode is the four operators that calculate with units. Arguments that an operator does not have are nil.
type dateMathNode struct {
	operator                     string
	date, end, unit              node
	amount, bin, zone, weekStart node
	apply                        func(s *Scratch, a *dateArgs) (bson.Value, error)
}

// dateArgs are the arguments of one evaluation.
type dateArgs struct {
	operator  string
	date, end bson.Value
	unit      unit
	amount    bson.Value
	bin       bson.Value
	zone      *time.Location
	weekStart time.Weekday
}

func (n *dateMathNode) eval(s *Scratch) (bson.Value, error) {
	a := dateArgs{operator: n.operator, weekStart: time.Sunday}
	var unit bson.Value
	for _, arg := range []struct {
		of   node
		into *bson.Value
	}{{n.date, &a.date}, {n.end, &a.end}, {n.unit, &unit}, {n.amount, &a.amount}, {n.bin, &a.bin}} {
		if arg.of == nil {
			continue
		}
		v, err := arg.of.eval(s)
		if err != nil || nullish(v) {
			return bson.Null, err
		}
		*arg.into = v
	}
	var null bool
	var err error
	if a.unit, err = unitOf(n.operator, unit); err != nil {
		return unit, err
	}
	if n.weekStart != nil && a.unit == unitWeek {
		v, err := n.weekStart.eval(s)
		if err != nil || nullish(v) {
			return bson.Null, err
		}
		if a.weekStart, err = weekdayOf(n.operator, v); err != nil {
			return v, err
		}
	}
	if a.zone, null, err = s.zone(n.zone); err != nil || null {
		return bson.Null, err
	}
	return n.apply(s, &a)
}

// dateMath compiles one of the operators: required are the arguments it must have, after date and unit.
func dateMath(apply func(s *Scratch, a *dateArgs) (bson.Value, error), notObject, unknown, missing mongoerr.Code, required []string, optional ...string) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		args, err := params(arg, mongoerr.New(notObject, "%s only supports an object as its argument", name), func(f string) error {
			return mongoerr.New(unknown, "Unrecognized argument to %s: %s", name, f)
		}, append(optional, required...)...)
		if err != nil {
			return nil, err
		}
		for i, p := range required {
			if _, ok := args[p]; ok {
				continue
			}
			if missing == 5166402 {
				return nil, mongoerr.New(missing, "%s requires startDate, unit, and amount to be present", name)
			}
			return nil, mongoerr.New(missing+mongoerr.Code(i), "Missing '%s' parameter to %s", p, name)
		}
		n := &dateMathNode{operator: name, apply: apply}
		err = c.optionals(args, map[string]*node{"date": &n.date, "startDate": &n.date, "endDate": &n.end, "unit": &n.unit,
			"amount": &n.amount, "binSize": &n.bin, "timezone": &n.zone, "startOfWeek": &n.weekStart})
		return n, err
	}
}

func (a *dateArgs) millis(v bson.Value, what string) (int64, error) {
	millis, err := millisOf(v)
	if err != nil {
		return 0, mongoerr.New(5166307, "%s requires '%s' to be a date, but got %s", a.operator, what, bson.TypeName(v.Type))
	}
	return millis, nil
}

// Dates beyond these are refused by the operators here: 200 million years, less than what 64 bits of milliseconds hold.
const maxMillis = 200e6 * 366 * dayMillis

func (s *Scratch) boundedDate(millis int64, overflow mongoerr.Code, what string) (bson.Value, error) {
	if millis > maxMillis || millis < -maxMillis {
		return bson.Null, mongoerr.New(overflow, "%s overflowed", what)
	}
	return s.date(millis), nil
}

func evalDateTrunc(s *Scratch, a *dateArgs) (bson.Value, error) {
	bin := int64(1)
	if a.bin.Type != 0 {
		var ok bool
		if bin, ok = wholeNumber(a.bin); !ok {
			return a.bin, mongoerr.New(5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s", show(a.bin), bson.TypeName(a.bin.Type))
		}
		if bin <= 0 {
			return a.bin, mongoerr.New(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %d", bin)
		}
		if bin > 100e9 {
			return a.bin, mongoerr.New(5439006, "dateTrunc unsupported binSize value")
		}
	}
	millis, err := millisOf(a.date)
	if err != nil {
		return a.date, err
	}
	if millis > maxMillis || millis < -maxMillis {
		return a.date, mongoerr.New(5439000, "dateTrunc overflowed")
	}
	return s.boundedDate(truncate(millis, a.unit, bin, a.zone, a.weekStart), 5439000, "dateTrunc")
}

// truncate returns the beginning of the bin that an instant is in. Bins are counted from 2000-01-01 in the zone, those of weeks from the
// first start of a week from then on (https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateTrunc/).
func truncate(millis int64, u unit, bin int64, zone *time.Location, weekStart time.Weekday) int64 {
	reference := time.Date(2000, time.January, 1, 0, 0, 0, 0, zone)
	if u <= unitHour {
		hi, size := bits.Mul64(uint64(bin), uint64(unitMillis[u]))
		if hi != 0 || size > math.MaxInt64 {
			size = math.MaxInt64
		}
		base := reference.UnixMilli()
		return base + floorDiv(millis-base, int64(size))*int64(size)
	}
	t := timeIn(millis, zone)
	switch u {
	case unitDay, unitWeek:
		offset := int64(0)
		if u == unitWeek {
			offset = int64((int(weekStart) - int(reference.Weekday()) + 7) % 7)
			bin *= 7
		}
		first := dayNumber(reference) + offset
		days := first + floorDiv(dayNumber(t)-first, bin)*bin
		return atMidnight(days, zone)
	case unitQuarter:
		bin *= 3
	case unitYear:
		bin *= 12
	}
	months := floorDiv(monthNumber(t)-2000*12, bin)*bin + 2000*12
	return time.Date(int(floorDiv(months, 12)), time.Month(months-floorDiv(months, 12)*12+1), 1, 0, 0, 0, 0, zone).UnixMilli()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// dayNumber counts days on the calendar that t is on, from 1970-01-01.
func dayNumber(t time.Time) int64 {
	_, offset := t.Zone()
	return floorDiv(t.Unix()+int64(offset), 24*3600)
}

// monthNumber counts months from year 0.
func monthNumber(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }

// atMidnight returns the beginning of the day with a number, in a zone.
func atMidnight(days int64, zone *time.Location) int64 {
	t := time.Unix(days*24*3600, 0).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, zone).UnixMilli()
}

// shift is $dateAdd, and $dateSubtract with sign -1.
func shift(sign int64) func(s *Scratch, a *dateArgs) (bson.Value, error) {
	return func(s *Scratch, a *dateArgs) (bson.Value, error) {
		millis, err := millisOf(a.date)
		if err != nil {
			return a.date, mongoerr.New(5166403, "%s requires startDate to be convertible to a date", a.operator)
		}
		amount, ok := wholeNumber(a.amount)
		if !ok {
			return a.amount, mongoerr.New(5166405, "%s expects integer amount of time units", a.operator)
		}
		if amount > maxMillis || amount < -maxMillis || millis > maxMillis || millis < -maxMillis {
			return a.amount, mongoerr.New(5166406, "dateAdd overflowed")
		}
		out, ok := shifted(millis, a.unit, sign*amount, a.zone)
		if !ok {
			return a.amount, mongoerr.New(5166406, "dateAdd overflowed")
		}
		return s.boundedDate(out, 5166406, "dateAdd")
	}
}

// shifted adds units on the calendar of a zone: a day keeps its hour over a change of clocks, a month its day or the last it has.
func shifted(millis int64, u unit, amount int64, zone *time.Location) (int64, bool) {
	if u <= unitHour {
		delta, ok := multiplied(amount, unitMillis[u])
		return millis + delta, ok && delta <= maxMillis && delta >= -maxMillis
	}
	if amount > maxMillis/dayMillis || amount < -maxMillis/dayMillis {
		return 0, false
	}
	t := timeIn(millis, zone)
	switch u {
	case unitDay:
		return t.AddDate(0, 0, int(amount)).UnixMilli(), true
	case unitWeek:
		return t.AddDate(0, 0, 7*int(amount)).UnixMilli(), true
	case unitQuarter:
		amount *= 3
	case unitYear:
		amount *= 12
	}
	months := monthNumber(t) + amount
	year := floorDiv(months, 12)
	month := time.Month(months - year*12 + 1)
	last := time.Date(int(year), month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(int(year), month, min(t.Day(), last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UnixMilli(), true
}

func evalDateDiff(s *Scratch, a *dateArgs) (bson.Value, error) {
	from, err := a.millis(a.date, "startDate")
	if err != nil {
		return a.date, err
	}
	to, err := a.millis(a.end, "endDate")
	if err != nil {
		return a.end, err
	}
	if from > maxMillis || from < -maxMillis || to > maxMillis || to < -maxMillis {
		return a.date, mongoerr.New(5166308, "dateDiff overflowed")
	}
	if a.unit == unitMillisecond && (to-from >= 0) != (to >= from) {
		return a.date, mongoerr.New(5166308, "dateDiff overflowed")
	}
	return s.int64(boundaries(from, to, a.unit, a.zone, a.weekStart)), nil
}

// boundaries counts the beginnings of units between two instants.
func boundaries(from, to int64, u unit, zone *time.Location, weekStart time.Weekday) int64 {
	a, b := timeIn(from, zone), timeIn(to, zone)
	switch u {
	case unitMillisecond:
		return to - from
	case unitSecond, unitMinute, unitHour:
		size := unitMillis[u]
		// Not the difference of the two divided: it may not fit.
		first, last := startOfUnit(from, a, size), startOfUnit(to, b, size)
		whole, rest := floorDiv(last, size)-floorDiv(first, size), last-floorDiv(last, size)*size-(first-floorDiv(first, size)*size)
		return whole + floorDiv(rest, size)
	case unitDay:
		return dayNumber(b) - dayNumber(a)
	case unitWeek:
		first := int64(weekStart) - int64(time.Thursday) // 1970-01-01 was a Thursday
		return floorDiv(dayNumber(b)-first, 7) - floorDiv(dayNumber(a)-first, 7)
	case unitMonth:
		return monthNumber(b) - monthNumber(a)
	case unitQuarter:
		return floorDiv(monthNumber(b), 3) - floorDiv(monthNumber(a), 3)
	}
	return int64(b.Year() - a.Year())
}

// startOfUnit cuts an instant to the beginning of its second, minute or hour, on the calendar that t is on.
func startOfUnit(millis int64, t time.Time, size int64) int64 {
	_, offset := t.Zone()
	local := millis + int64(offset)*1000
	return millis - (local - floorDiv(local, size)*size)
}
