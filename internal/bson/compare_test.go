package bson_test

import (
	"testing"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

// TestCompareOrder lists values in ascending order, equal ones on one line.
func TestCompareOrder(t *testing.T) {
	order := [][]string{
		{`{"$minKey": 1}`},
		{`null`, `{"$undefined": true}`},
		{`{"$numberDouble": "NaN"}`, `{"$numberDecimal": "NaN"}`},
		{`{"$numberDouble": "-Infinity"}`, `{"$numberDecimal": "-Infinity"}`},
		{`{"$numberDecimal": "-1E400"}`},
		{`{"$numberLong": "-9223372036854775808"}`, `{"$numberDouble": "-9223372036854775808"}`},
		{`-1`, `{"$numberDouble": "-1.0"}`, `{"$numberDecimal": "-1.00"}`},
		{`{"$numberDecimal": "-1E-6176"}`},
		{`0`, `{"$numberDouble": "-0.0"}`, `{"$numberDecimal": "-0E+100"}`},
		{`{"$numberDecimal": "1E-6176"}`},
		{`{"$numberDouble": "5e-324"}`},
		{`{"$numberDecimal": "0.1"}`},
		{`{"$numberDouble": "0.1"}`},
		{`{"$numberLong": "9007199254740992"}`, `{"$numberDouble": "9007199254740992"}`},
		{`{"$numberDecimal": "9007199254740992.5"}`},
		{`{"$numberLong": "9007199254740993"}`, `{"$numberDecimal": "9007199254740993"}`},
		{`{"$numberDouble": "9007199254740994"}`},
		{`{"$numberDecimal": "1E400"}`},
		{`{"$numberDouble": "Infinity"}`},
		{`""`},
		{`"A"`},
		{`"a"`, `{"$symbol": "a"}`},
		{`"a\u0000"`},
		{`"ab"`},
		{`{}`},
		{`{"b": null}`},
		{`{"a": 1}`}, // the class of the value comes before the key
		{`{"a": 1, "b": 1}`},
		{`{"a": 2}`},
		{`{"b": 1}`},
		{`[]`},
		{`[null]`},
		{`[1, 2]`},
		{`[2]`},
		{`[[]]`},
		{`{"$binary": {"base64": "", "subType": "80"}}`},
		{`{"$binary": {"base64": "/w==", "subType": "00"}}`},
		{`{"$binary": {"base64": "AA==", "subType": "04"}}`},
		{`{"$oid": "000000000000000000000000"}`},
		{`{"$oid": "64f1a2b3c4d5e6f708192a3b"}`},
		{`false`},
		{`true`},
		{`{"$date": "1969-01-01T00:00:00Z"}`},
		{`{"$date": "2017-06-05T00:00:00Z"}`},
		{`{"$timestamp": {"t": 1, "i": 4294967295}}`},
		{`{"$timestamp": {"t": 4000000000, "i": 0}}`},
		{`{"$regularExpression": {"pattern": "a", "options": ""}}`},
		{`{"$regularExpression": {"pattern": "a", "options": "i"}}`},
		{`{"$dbPointer": {"$ref": "c", "$id": {"$oid": "64f1a2b3c4d5e6f708192a3b"}}}`},
		{`{"$code": "f"}`},
		{`{"$code": "f", "$scope": {}}`},
		{`{"$code": "f", "$scope": {"x": 1}}`},
		{`{"$maxKey": 1}`},
	}
	for i, line := range order {
		for j, other := range order {
			for _, a := range line {
				for _, b := range other {
					want := min(max(i-j, -1), 1)
					x, y := bsontest.Value(t, a), bsontest.Value(t, b)
					if got := bson.Compare(x, y); got != want {
						t.Errorf("%s against %s: %d, want %d", a, b, got, want)
					}
					checkKeys(t, x, y)
				}
			}
		}
	}
}

func TestMissingStandsBeforeNull(t *testing.T) {
	missing := bson.Value{}
	checkKeys(t, missing, bson.Null)
	if bson.Compare(missing, bson.Null) != -1 || bson.Compare(bson.Value{Type: bson.TypeMinKey}, missing) != -1 {
		t.Error("a missing value is not between MinKey and null")
	}
}
