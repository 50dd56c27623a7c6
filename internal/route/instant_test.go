package route

import (
	"strings"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

func TestInstant(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		value string
		ms    int64
	}{
		{Date, `{"$date": "2001-01-15T08:30:00.250Z"}`, 979547400250},
		{Date, `{"$date": {"$numberLong": "0"}}`, 0},
		{Date, `{"$date": {"$numberLong": "253402300799999"}}`, maxInstant},
		{Seconds, `{"$numberInt": "979547400"}`, 979547400000},
		{Seconds, `{"$numberLong": "979547400"}`, 979547400000},
		{Seconds, `{"$numberDouble": "979547400"}`, 979547400000},
		{Seconds, `{"$numberDecimal": "979547400.00"}`, 979547400000},
		{Seconds, `{"$numberDecimal": "9795474E+2"}`, 979547400000},
		{Seconds, `{"$numberDouble": "-0"}`, 0},
		{Seconds, `{"$numberLong": "253402300799"}`, maxInstant - 999},
		{Milliseconds, `{"$numberLong": "979547400250"}`, 979547400250},
		{Milliseconds, `{"$numberDouble": "979547400250"}`, 979547400250},
		{ObjectID, `{"$oid": "3a62b4c80000000000000000"}`, 979547336000},
		{ObjectID, `{"$oid": "ffffffffffffffffffffffff"}`, 4294967295000},
	} {
		l := Time{Field: bson.ParsePath("time"), Unit: c.unit}
		ms, err := l.Instant(bsontest.Value(t, c.value))
		if err != nil || ms != c.ms {
			t.Errorf("%s as %s: %d, %v; want %d", c.value, c.unit, ms, err, c.ms)
		}
	}
}

func TestInstantRefuses(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		value string
		says  []string
	}{
		{Date, `null`, []string{"'time'", "a date", "null"}},
		{Date, `[{"$date": "2001-01-15T00:00:00Z"}]`, []string{"an array"}},
		{Date, `{"$numberLong": "979547400250"}`, []string{"a date", "979547400250", "a number"}},
		{Date, `"2001-01-15"`, []string{"2001-01-15", "a string"}},
		{Date, `{"$timestamp": {"t": 979547400, "i": 1}}`, []string{"timestamp"}},
		{Date, `{"$date": {"$numberLong": "-1"}}`, []string{"1969-12-31T23:59:59.999Z", "before 1970"}},
		{Date, `{"$date": {"$numberLong": "253402300800000"}}`, []string{"253402300800000", "after the year 9999"}},
		{Date, `{"$date": {"$numberLong": "1700000000000000"}}`, []string{"microseconds"}},
		{Seconds, `{"$numberLong": "1700000000000"}`, []string{"'time'", "1700000000000", "milliseconds", "unit is seconds"}},
		{Seconds, `{"$numberDouble": "1700000000000"}`, []string{"milliseconds"}},
		{Seconds, `{"$numberLong": "1700000000000000"}`, []string{"microseconds"}},
		{Seconds, `{"$numberDouble": "1.5"}`, []string{"1.5", "fraction"}},
		{Seconds, `{"$numberDecimal": "979547400.01"}`, []string{"979547400.01", "fraction"}},
		{Seconds, `{"$numberDouble": "NaN"}`, []string{"NaN", "not a number"}},
		{Seconds, `{"$numberDecimal": "NaN"}`, []string{"NaN", "not a number"}},
		{Seconds, `{"$numberDouble": "Infinity"}`, []string{"after the year 9999"}},
		{Seconds, `{"$numberDecimal": "-Infinity"}`, []string{"before 1970"}},
		{Seconds, `{"$numberInt": "-1"}`, []string{"-1", "before 1970"}},
		{Seconds, `{"$numberDouble": "1e300"}`, []string{"after the year 9999"}},
		{Seconds, `{"$date": "2001-01-15T00:00:00Z"}`, []string{"seconds", "a date"}},
		{Seconds, `true`, []string{"a bool"}},
		{Milliseconds, `{"$numberLong": "1700000000000000"}`, []string{"microseconds", "unit is milliseconds"}},
		{ObjectID, `{"$date": "2001-01-15T00:00:00Z"}`, []string{"an ObjectId", "a date"}},
		{ObjectID, `"3a62b4c80000000000000000"`, []string{"a string"}},
	} {
		l := Time{Field: bson.ParsePath("time"), Unit: c.unit}
		_, err := l.Instant(bsontest.Value(t, c.value))
		if !mongoerr.Is(err, mongoerr.BadValue) {
			t.Errorf("%s as %s: %v, want BadValue", c.value, c.unit, err)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s as %s: %q does not say %q", c.value, c.unit, err, text)
			}
		}
	}
}

// days returns a table with a day layout in UTC and partitions of the given days of January 2026.
func days(field string, unit Unit, days ...int) *Table {
	table := &Table{Layout: Layout{Time: &Time{Field: bson.ParsePath(field), Unit: unit, Every: Day, Zone: time.UTC, Ahead: 2}}}
	for _, d := range days {
		start := day(d)
		table.Partitions = append(table.Partitions, Partition{Slot: -1, Start: start, End: start + 86400000, State: Active})
	}
	return table
}

// day returns the start of a day of January 2026, UTC.
func day(d int) int64 { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC).UnixMilli() }
