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

// dateToStringNode is $dateToString.
type dateToStringNode struct{ date, format, zone, onNull node }

func (n *dateToStringNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.date.eval(s)
	if err != nil {
		return v, err
	}
	format, noFormat, err := s.dateFormat(n.format, "$dateToString", 18533, "%dGHjLmMSwuUVYzZbB")
	if err != nil {
		return v, err
	}
	zone, null, err := s.zone(n.zone)
	if err != nil {
		return v, err
	}
	if nullish(v) {
		if n.onNull != nil {
			return n.onNull.eval(s)
		}
		return bson.Null, nil
	}
	if null || noFormat {
		return bson.Null, nil
	}
	millis, err := millisOf(v)
	if err != nil {
		return v, err
	}
	if format == "" && n.format == nil {
		format = isoFormat
	}
	b, err := appendDate(nil, format, timeIn(millis, zone))
	if err != nil {
		return v, err
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
	if err := c.optionals(args, map[string]*node{"format": &n.format, "date": &n.date, "timezone": &n.zone, "onNull": &n.onNull}); err != nil {
		return nil, err
	}
	if n.date == nil {
		return nil, mongoerr.New(18628, "Missing 'date' parameter to $dateToString")
	}
	return n, nil
}

// dateFromStringNode is $dateFromString.
type dateFromStringNode struct{ text, format, zone, onNull, onError node }

func (n *dateFromStringNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.text.eval(s)
	if err != nil {
		return v, err
	}
	format, noFormat, err := s.dateFormat(n.format, "$dateFromString", 40684, "%dGHjLmMSuVYzZbB")
	if err != nil {
		return v, err
	}
	zone, null, err := s.zone(n.zone)
	if err != nil {
		return v, err
	}
	if nullish(v) {
		if n.onNull != nil {
			return n.onNull.eval(s)
		}
		return bson.Null, nil
	}
	if null || noFormat {
		return bson.Null, nil
	}
	if n.zone == nil {
		zone = nil
	}
	millis, err := dateOfText(v, format, n.format != nil, zone)
	if err != nil {
		if n.onError != nil && mongoerr.Is(err, mongoerr.ConversionFailure) {
			return n.onError.eval(s)
		}
		return v, err
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
	if err := c.optionals(args, map[string]*node{"format": &n.format, "dateString": &n.text, "timezone": &n.zone, "onNull": &n.onNull, "onError": &n.onError}); err != nil {
		return nil, err
	}
	if n.text == nil {
		return nil, mongoerr.New(40542, "Missing 'dateString' parameter to $dateFromString")
	}
	return n, nil
}
