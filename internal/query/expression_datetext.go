package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// isoFormat is $dateToString's default.
const isoFormat = "%Y-%m-%dT%H:%M:%S.%LZ"

// isoText gives an instant as MongoDB writes it in UTC.
func isoText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// dateTextNode is what $dateToString and $dateFromString have alike.
type dateTextNode struct{ input, format, zone, onNull node }

// dateTextArgs are the arguments of one evaluation. Where done is set, instead is the result.
type dateTextArgs struct {
	input   bson.Value
	format  string
	zone    *time.Location
	instead bson.Value
	done    bool
}

// arguments evaluates a format and a zone, which must be right even where the input is null, and then the input's null.
func (n *dateTextNode) arguments(s *Scratch, operator string, code mongoerr.Code, conversions string) (a dateTextArgs, err error) {
	if a.input, err = n.input.eval(s); err != nil {
		return a, err
	}
	var noFormat, noZone bool
	if a.format, noFormat, err = s.dateFormat(n.format, operator, code, conversions); err != nil {
		return a, err
	}
	if a.zone, noZone, err = s.zone(n.zone); err != nil {
		return a, err
	}
	switch {
	case nullish(a.input) && n.onNull != nil:
		a.done = true
		a.instead, err = n.onNull.eval(s)
	case nullish(a.input) || noFormat || noZone:
		a.done, a.instead = true, bson.Null
	}
	return a, err
}

// dateToStringNode is $dateToString.
type dateToStringNode struct{ dateTextNode }

func (n *dateToStringNode) eval(s *Scratch) (bson.Value, error) {
	a, err := n.arguments(s, "$dateToString", 18533, "%dGHjLmMSwuUVYzZbB")
	if err != nil || a.done {
		return a.instead, err
	}
	millis, err := millisOf(a.input)
	if err != nil {
		return a.input, err
	}
	if n.format == nil {
		a.format = isoFormat
	}
	b, err := appendDate(nil, a.format, timeIn(millis, a.zone))
	if err != nil {
		return a.input, err
	}
	return s.text(b)
}

// dateFormat evaluates and checks a format: null is true where it is given and null. allowed are its conversion characters.
func (s *Scratch) dateFormat(n node, operator string, code mongoerr.Code, allowed string) (format string, null bool, err error) {
	if n == nil {
		return "", false, nil
	}
	v, err := n.eval(s)
	if err != nil || nullish(v) {
		return "", true, err
	}
	if v.Type != bson.TypeString {
		return "", false, mongoerr.New(code, "%s requires that 'format' be a string, found: %s with value %s", operator, bson.TypeName(v.Type), show(v))
	}
	format = textOf(v)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return "", false, mongoerr.New(18535, "Unmatched '%%' at end of format string")
		}
		if strings.IndexByte(allowed, format[i]) < 0 {
			return "", false, mongoerr.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return format, false, nil
}

// appendDate appends a date in a format that dateFormat checked.
func appendDate(b []byte, format string, t time.Time) ([]byte, error) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		i++
		switch format[i] {
		case '%':
			b = append(b, '%')
		case 'd':
			b = fmt.Appendf(b, "%02d", t.Day())
		case 'G', 'Y':
			year := t.Year()
			if format[i] == 'G' {
				year = isoYear(t)
			}
			if year < 0 || year > 9999 {
				return b, mongoerr.New(18537, "Could not convert date to string: date component was outside the supported range of 0-9999: %d", year)
			}
			b = fmt.Appendf(b, "%04d", year)
		case 'H':
			b = fmt.Appendf(b, "%02d", t.Hour())
		case 'j':
			b = fmt.Appendf(b, "%03d", t.YearDay())
		case 'L':
			b = fmt.Appendf(b, "%03d", milliOfSecond(t))
		case 'm':
			b = fmt.Appendf(b, "%02d", t.Month())
		case 'M':
			b = fmt.Appendf(b, "%02d", t.Minute())
		case 'S':
			b = fmt.Appendf(b, "%02d", t.Second())
		case 'w':
			b = strconv.AppendInt(b, int64(t.Weekday())+1, 10)
		case 'u':
			b = strconv.AppendInt(b, int64(isoDay(t)), 10)
		case 'U':
			b = fmt.Appendf(b, "%02d", weekOfYear(t))
		case 'V':
			b = fmt.Appendf(b, "%02d", isoWeek(t))
		case 'b':
			b = append(b, t.Month().String()[:3]...)
		case 'B':
			b = append(b, t.Month().String()...)
		case 'z':
			b = t.AppendFormat(b, "-0700")
		case 'Z':
			_, offset := t.Zone()
			b = strconv.AppendInt(b, int64(offset/60), 10)
		}
	}
	return b, nil
}

func buildDateToString(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(18629, "$dateToString only supports an object as its argument"), func(f string) error {
		return mongoerr.New(18534, "Unrecognized argument to $dateToString: %s", f)
	}, "format", "date", "timezone", "onNull")
	if err != nil {
		return nil, err
	}
	n := &dateToStringNode{}
	if err := c.optionals(args, map[string]*node{"format": &n.format, "date": &n.input, "timezone": &n.zone, "onNull": &n.onNull}); err != nil {
		return nil, err
	}
	if n.input == nil {
		return nil, mongoerr.New(18628, "Missing 'date' parameter to $dateToString")
	}
	return n, nil
}

// dateFromStringNode is $dateFromString.
type dateFromStringNode struct {
	dateTextNode
	onError node
}

func (n *dateFromStringNode) eval(s *Scratch) (bson.Value, error) {
	a, err := n.arguments(s, "$dateFromString", 40684, "%dGHjLmMSuVYzZbB")
	if err != nil || a.done {
		return a.instead, err
	}
	if n.zone == nil {
		a.zone = nil
	}
	millis, err := dateOfText(a.input, a.format, n.format != nil, a.zone)
	if err != nil {
		if n.onError != nil && mongoerr.Is(err, mongoerr.ConversionFailure) {
			return n.onError.eval(s)
		}
		return a.input, err
	}
	return s.date(millis), nil
}

func dateOfText(v bson.Value, format string, formatted bool, zone *time.Location) (int64, error) {
	if v.Type != bson.TypeString {
		return 0, failed("$dateFromString requires that 'dateString' be a string, found: %s with value %s", bson.TypeName(v.Type), show(v))
	}
	if formatted {
		return parseDateFormat(textOf(v), format, zone)
	}
	return parseDate(textOf(v), zone)
}

func buildDateFromString(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(40540, "$dateFromString only supports an object as an argument, found: %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(40541, "Unrecognized argument to $dateFromString: %s", f)
	}, "format", "dateString", "timezone", "onNull", "onError")
	if err != nil {
		return nil, err
	}
	n := &dateFromStringNode{}
	if err := c.optionals(args, map[string]*node{"format": &n.format, "dateString": &n.input, "timezone": &n.zone, "onNull": &n.onNull, "onError": &n.onError}); err != nil {
		return nil, err
	}
	if n.input == nil {
		return nil, mongoerr.New(40542, "Missing 'dateString' parameter to $dateFromString")
	}
	return n, nil
}
