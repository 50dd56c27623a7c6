package route

import (
	"encoding/binary"
	"fmt"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// maxInstant is the last millisecond of the year 9999, UTC.
const maxInstant = 253402300799999

// perUnit is how many milliseconds one step of a unit is.
func (u Unit) perUnit() int64 {
	if u == Seconds || u == ObjectID {
		return 1000
	}
	return 1
}

// max returns the last value of a unit that can be stored.
func (u Unit) max() int64 {
	if u == ObjectID {
		return 1<<32 - 1
	}
	return maxInstant / u.perUnit()
}

// String returns the unit as the configuration writes it.
func (u Unit) String() string {
	return [...]string{"date", "s", "ms", "objectId"}[u]
}

// wants says what a unit's field must hold.
func (u Unit) wants() string {
	return [...]string{"a date", "a whole number of seconds since 1970", "a whole number of milliseconds since 1970", "an ObjectId"}[u]
}

// Instant reads the time of a document's field value in milliseconds since 1970. Numbers of all types that are equal give the same. The error (BadValue)
// names field, value and reason: a wrong type, an array, null, a fraction, NaN, a time before 1970 or after 9999.
func (t *Time) Instant(v bson.Value) (int64, error) {
	n, err := t.stored(v)
	return n * t.Unit.perUnit(), err
}

// stored reads a field value in steps of the unit.
func (t *Time) stored(v bson.Value) (int64, error) {
	var n int64
	switch t.Unit {
	case ObjectID:
		id, ok := v.ObjectIDOK()
		if !ok {
			return 0, t.refuse(v, "it is "+typeName(v.Type))
		}
		return int64(binary.BigEndian.Uint32(id[:4])), nil
	case Date:
		ms, ok := v.DateTimeOK()
		if !ok {
			return 0, t.refuse(v, "it is "+typeName(v.Type))
		}
		n = ms
	default:
		number, ok := bson.NumberOf(v)
		switch {
		case !ok:
			return 0, t.refuse(v, "it is "+typeName(v.Type))
		case number.IsNaN():
			return 0, t.refuse(v, "it is not a number")
		}
		if n, ok = number.Int64(); !ok {
			if _, ok := number.TruncInt64(); ok {
				return 0, t.refuse(v, "it has a fraction")
			}
			return 0, t.refuse(v, beyond(number.Sign(), 0, t.Unit))
		}
	}
	if n < 0 || n > t.Unit.max() {
		return 0, t.refuse(v, beyond(sign(n), n, t.Unit))
	}
	return n, nil
}

func sign(n int64) int {
	if n < 0 {
		return -1
	}
	return 1
}

// beyond says why a number is no time: before 1970 or after 9999, and what it looks like.
func beyond(sign int, n int64, u Unit) string {
	if sign < 0 {
		return "it is before 1970"
	}
	if guess := guess(n, u); guess != "" {
		return "it is after the year 9999; " + guess
	}
	return "it is after the year 9999"
}

// The years that a mistaken unit is recognised by: a number that is one of these read in another unit was probably meant so.
var (
	plausibleFrom = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	plausibleTo   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// guess says what a number that is too late or too early for its unit was probably meant to be, or "".
func guess(n int64, u Unit) string {
	plausible := func(ms int64) bool { return ms >= plausibleFrom && ms < plausibleTo }
	switch u {
	case Seconds:
		switch {
		case plausible(n):
			return "it looks like milliseconds, and the layout's unit is seconds"
		case plausible(n / 1000):
			return "it looks like microseconds, and the layout's unit is seconds"
		}
	case Milliseconds, Date:
		unit := "the layout's unit is milliseconds"
		if u == Date {
			unit = "a date counts milliseconds"
		}
		switch {
		case n > 0 && n < plausibleTo/1000 && plausible(n*1000):
			return "it looks like seconds, and " + unit
		case plausible(n / 1000):
			return "it looks like microseconds, and " + unit
		case plausible(n / 1e6):
			return "it looks like nanoseconds, and " + unit
		}
	}
	return ""
}

func (t *Time) refuse(v bson.Value, why string) error {
	return mongoerr.New(mongoerr.BadValue, "the time field '%s' must hold %s, but %s is refused: %s", t.Field, t.Unit.wants(), shown(v), why)
}

// shown prints a value for a message, shortened.
func shown(v bson.Value) string {
	if v.Type == 0 {
		return "a missing value"
	}
	if ms, ok := v.DateTimeOK(); ok {
		if ms >= -62135596800000 && ms <= maxInstant {
			return instantText(ms)
		}
		return fmt.Sprintf("the date of %d ms since 1970", ms)
	}
	if n, ok := bson.NumberOf(v); ok {
		return n.String()
	}
	s, cut := v.StringN(80)
	if cut {
		s += "…"
	}
	if s == "" {
		return "its value"
	}
	return s
}

// typeName names a type as $type does, with an article.
func typeName(t bson.Type) string {
	switch t {
	case 0:
		return "missing"
	case bson.TypeNull:
		return "null"
	case bson.TypeUndefined:
		return "undefined"
	case bson.TypeArray:
		return "an array"
	case bson.TypeDocument:
		return "an object"
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return "a number"
	case bson.TypeObjectID:
		return "an ObjectId"
	case bson.TypeDateTime:
		return "a date"
	default:
		return "a " + bson.TypeName(t)
	}
}

// instantText writes an instant in UTC, as short as it is exact: "2001-01-15", "2001-01-15T08:30:00Z".
func instantText(ms int64) string {
	at := time.UnixMilli(ms).UTC()
	switch {
	case ms%86400000 == 0:
		return at.Format("2006-01-02")
	case ms%1000 == 0:
		return at.Format("2006-01-02T15:04:05Z")
	default:
		return at.Format("2006-01-02T15:04:05.000Z")
	}
}
