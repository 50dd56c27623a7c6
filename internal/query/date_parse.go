package query

import (
	"strings"
	"time"
)

// dateLayouts are the forms of dates that are read without a format; after seconds a fraction may follow. MongoDB reads more.
var dateLayouts = []string{
	"2006-1-2T15:4:5", "2006-1-2 15:4:5", "2006-1-2T15:4", "2006-1-2 15:4", "2006-1-2T15", "2006-1-2", "2006-1",
	"2006/1/2T15:4:5", "2006/1/2 15:4:5", "2006/1/2 15:4", "2006/1/2",
	"20060102T150405", "20060102T1504", "20060102",
	"1/2/2006 15:4:5", "1/2/2006 15:4", "1/2/2006",
	"January 2, 2006 15:4:5", "January 2, 2006", "Jan 2, 2006 15:4:5", "Jan 2, 2006", "January 2 2006", "Jan 2 2006",
	"2 January 2006 15:4:5", "2 January 2006", "2 Jan 2006 15:4:5", "2 Jan 2006",
	"Mon, 2 Jan 2006 15:4:5", "Mon, 2 Jan 2006",
}

// parseDate reads a date; zone is where it is local, nil for UTC unless the text itself has a zone. What is no date, and a zone in both
// places, is ConversionFailure (241).
func parseDate(text string, zone *time.Location) (int64, error) {
	rest, own := cutZone(strings.TrimSpace(text))
	if own != nil && zone != nil {
		return 0, failed("you cannot pass in a date/time string with time zone information ('%s') together with a timezone argument", text)
	}
	if own == nil {
		own = zone
	}
	if own == nil {
		own = time.UTC
	}
	for _, layout := range dateLayouts {
		if t, err := time.ParseInLocation(layout, rest, own); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, failed("Error parsing date string '%s'", text)
}

// cutZone takes a zone off the end of a text that has a time of day.
func cutZone(text string) (rest string, zone *time.Location) {
	if !strings.ContainsAny(text, ":T") {
		return text, nil
	}
	for _, suffix := range []string{"Z", "z", " UTC", " GMT", "UTC", "GMT"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok && rest != "" {
			return strings.TrimSpace(rest), time.UTC
		}
	}
	at := strings.LastIndexAny(text, "+-")
	if at <= strings.IndexAny(text, ":T") {
		return text, nil
	}
	zone = offsetZone(text[at:])
	if zone == nil {
		return text, nil
	}
	return strings.TrimSpace(text[:at]), zone
}

// dateParts is what a format found.
type dateParts struct {
	year, month, day, yearDay, hour, minute, second, milli int
	isoYear, isoWeek, isoDay                               int
	iso                                                    bool
	zone                                                   *time.Location
}

// formatWidths gives how many digits a conversion character takes at the least and at the most.
var formatWidths = map[byte][2]int{
	'd': {1, 2}, 'G': {4, 4}, 'H': {1, 2}, 'j': {1, 3}, 'L': {1, 3}, 'm': {1, 2}, 'M': {1, 2}, 'S': {1, 2}, 'u': {1, 1}, 'V': {1, 2}, 'Y': {4, 4},
}

// parseDateFormat reads a date in a format that dateFormat checked.
func parseDateFormat(text, format string, zone *time.Location) (int64, error) {
	fail := func(reason string) error {
		return failed("Error parsing date string '%s'; %s", text, reason)
	}
	p := dateParts{year: 1970, month: 1, day: 1, isoYear: 1970, isoWeek: 1, isoDay: 1}
	rest := text
	for i := 0; i < len(format); i++ {
		if format[i] == '%' && format[i+1] != '%' {
			i++
			var ok bool
			if rest, ok = p.read(format[i], rest); !ok {
				return 0, fail("what stands for '%" + format[i:i+1] + "' does not fit")
			}
			continue
		}
		if format[i] == '%' {
			i++
		}
		if rest == "" || rest[0] != format[i] {
			return 0, fail("Format literal not found")
		}
		rest = rest[1:]
	}
	if rest != "" {
		return 0, fail("Trailing data")
	}
	if p.zone != nil && zone != nil {
		return 0, failed("you cannot pass in a date/time string with GMT offset together with a timezone argument")
	}
	for _, z := range []*time.Location{zone, time.UTC} {
		if p.zone == nil {
			p.zone = z
		}
	}
	return p.millis(), nil
}

func (p *dateParts) millis() int64 {
	year, month, day := int64(p.year), int64(p.month), int64(p.day)
	switch {
	case p.iso:
		year, month, day = isoCalendar(int64(p.isoYear), int64(p.isoWeek), int64(p.isoDay))
	case p.yearDay > 0:
		month, day = 1, int64(p.yearDay)
	}
	return time.Date(int(year), time.Month(month), int(day), p.hour, p.minute, p.second, p.milli*int(time.Millisecond), p.zone).UnixMilli()
}

// read takes one conversion off the front of text.
func (p *dateParts) read(conversion byte, text string) (rest string, ok bool) {
	switch conversion {
	case 'z', 'Z':
		return p.readZone(conversion, text)
	case 'b', 'B':
		for m := time.January; m <= time.December; m++ {
			name := m.String()
			if conversion == 'b' {
				name = name[:3]
			}
			if len(text) >= len(name) && strings.EqualFold(text[:len(name)], name) {
				p.month = int(m)
				return text[len(name):], true
			}
		}
		return text, false
	}
	width := formatWidths[conversion]
	n, i := 0, 0
	for ; i < len(text) && i < width[1] && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	return text[i:], i >= width[0] && p.set(conversion, n)
}

func (p *dateParts) readZone(conversion byte, text string) (rest string, ok bool) {
	if conversion == 'z' {
		for _, n := range []int{6, 5, 3, 1} {
			if len(text) >= n {
				if p.zone = offsetZone(text[:n]); p.zone != nil {
					return text[n:], true
				}
			}
		}
		return text, false
	}
	if len(text) < 2 || text[0] != '+' && text[0] != '-' {
		return text, false
	}
	n, i := 0, 1
	for ; i < len(text) && i < 5 && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	if text[0] == '-' {
		n = -n
	}
	p.zone = time.FixedZone("", n*60)
	return text[i:], i > 1
}

// set stores a number, and reports whether it is in range.
func (p *dateParts) set(conversion byte, n int) bool {
	switch conversion {
	case 'Y':
		p.year = n
	case 'm':
		p.month = n
		return n >= 1 && n <= 12
	case 'd':
		p.day = n
		return n >= 1 && n <= 31
	case 'j':
		p.yearDay = n
		return n >= 1 && n <= 366
	case 'H':
		p.hour = n
		return n <= 24
	case 'M':
		p.minute = n
		return n <= 59
	case 'S':
		p.second = n
		return n <= 59
	case 'L':
		p.milli = n
	case 'G':
		p.isoYear, p.iso = n, true
	case 'V':
		p.isoWeek, p.iso = n, true
		return n >= 1 && n <= 53
	case 'u':
		p.isoDay, p.iso = n, true
		return n >= 1 && n <= 7
	}
	return true
}
