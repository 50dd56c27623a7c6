package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is a stretch of time that comes on some days of the week.
type Window struct {
	text  string
	days  [7]bool // by time.Weekday: of the day on which it begins
	begin int     // minutes of the clock since midnight
	end   int     // the same, of the day after where it is not later than begin
	zone  *time.Location
}

// String gives the text that it was read from.
func (w Window) String() string { return w.text }

// Windows are the times at which something may run. None: always.
type Windows []Window

// Texts gives the texts that they were read from.
func (ws Windows) Texts() []string {
	var texts []string
	for _, w := range ws {
		texts = append(texts, w.text)
	}
	return texts
}

// Parse reads a window: "22:00-08:00", with days before it ("mon-fri", "sat,sun") and a zone of the IANA database behind it ("Asia/Shanghai", UTC where
// there is none). One that ends at or before the time of its begin ends on the day after; 24:00 is the end of a day.
func Parse(text string) (Window, error) {
	w, err := parse(strings.Fields(text))
	if err != nil {
		return Window{}, fmt.Errorf("%q is not a window such as \"mon-fri 22:00-08:00 Asia/Shanghai\": %w", text, err)
	}
	w.text = strings.Join(strings.Fields(text), " ")
	return w, nil
}

// ParseAll reads windows.
func ParseAll(texts []string) (Windows, error) {
	var ws Windows
	var errs []error
	for _, text := range texts {
		w, err := Parse(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ws = append(ws, w)
	}
	return ws, errors.Join(errs...)
}

func parse(words []string) (Window, error) {
	w := Window{days: [7]bool{true, true, true, true, true, true, true}, zone: time.UTC}
	var err error
	if len(words) > 0 && !strings.Contains(words[0], ":") {
		if w.days, err = parseDays(words[0]); err != nil {
			return w, err
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return w, errors.New("it has no time")
	}
	if w.begin, w.end, err = parseTimes(words[0]); err != nil {
		return w, err
	}
	if words = words[1:]; len(words) > 0 {
		if w.zone, err = loadZone(words[0]); err != nil {
			return w, err
		}
		words = words[1:]
	}
	if len(words) > 0 {
		return w, fmt.Errorf("%q is too much", words[0])
	}
	return w, nil
}

// loadZone refuses the names that stand for the machine's own zone.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("there is no zone %q; zones are named as in the IANA database", name)
	}
	return zone, nil
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseDays reads "mon,wed-fri"; "sat-mon" goes over the end of the week.
func parseDays(text string) (days [7]bool, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.ToLower(part), "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
		if from < 0 || to < 0 {
			return days, fmt.Errorf("%q is no day or range of days: they are %s", part, strings.Join(dayNames, ", "))
		}
		for d := from; ; d = (d + 1) % 7 {
			days[d] = true
			if d == to {
				break
			}
		}
	}
	return days, nil
}

// parseTimes reads "22:00-08:00".
func parseTimes(text string) (begin, end int, err error) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a begin and an end", text)
	}
	if begin, err = parseTime(from); err != nil {
		return 0, 0, err
	}
	if end, err = parseTime(to); err != nil {
		return 0, 0, err
	}
	switch {
	case begin == minutesOfDay:
		return 0, 0, errors.New("24:00 is an end only")
	case begin == end:
		return 0, 0, fmt.Errorf("it begins and ends at %s: a whole day is 00:00-24:00", from)
	}
	return begin, end, nil
}

const minutesOfDay = 24 * 60

func parseTime(text string) (int, error) {
	hour, minute, ok := strings.Cut(text, ":")
	h, okHour := number(hour)
	m, okMinute := number(minute)
	if at := h*60 + m; ok && okHour && okMinute && len(minute) == 2 && m < 60 && at <= minutesOfDay {
		return at, nil
	}
	return 0, fmt.Errorf("%q is no time from 00:00 to 24:00", text)
}

// number reads one or two digits.
func number(text string) (int, bool) {
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(text) == 1 || len(text) == 2
}
