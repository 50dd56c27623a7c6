package query

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // so that zones are the same everywhere, also where the system has none

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// zones remembers the zones that were looked up by name; there are a few hundred.
var zones sync.Map

// zoneNamed returns a zone by its IANA name ("Europe/Berlin"), or by an offset: +[hh], +[hh][mm], +[hh]:[mm].
func zoneNamed(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if zone := offsetZone(name); zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, mongoerr.New(40485, "unrecognized time zone identifier: \"%s\"", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// offsetZone reads an offset; it returns nil for what is none.
func offsetZone(text string) *time.Location {
	switch text {
	case "UTC", "GMT", "Z", "utc", "gmt", "z":
		return time.UTC
	}
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return nil
	}
	digits := text[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) != 2 && len(digits) != 4 || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	digits += "00"
	seconds := (int(digits[0]-'0')*10+int(digits[1]-'0'))*3600 + (int(digits[2]-'0')*10+int(digits[3]-'0'))*60
	if text[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone("", seconds)
}

// zone evaluates an operator's timezone argument: UTC where there is none, null true where it is null.
func (s *Scratch) zone(n node) (zone *time.Location, null bool, err error) {
	switch n := n.(type) {
	case nil:
		return time.UTC, false, nil
	case constant:
		if n.value.Type == bson.TypeString {
			zone, err = zoneNamed(textOf(n.value))
			return zone, false, err
		}
	}
	v, err := n.eval(s)
	if err != nil || nullish(v) {
		return nil, true, err
	}
	if v.Type != bson.TypeString {
		return nil, false, mongoerr.New(40517, "timezone must evaluate to a string, found %s", bson.TypeName(v.Type))
	}
	zone, err = zoneNamed(textOf(v))
	return zone, false, err
}
