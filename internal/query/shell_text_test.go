package query

import (
	"slices"
	"strings"
	"testing"

	"oxbow/internal/bson"
)

func TestValueText(t *testing.T) {
	for text, want := range map[string]string{
		`1`:                                    `1`,
		`1.0`:                                  `1.0`,
		`2.5`:                                  `2.5`,
		`{"$numberLong": "5"}`:                 `5`,
		`{"$numberDecimal": "1E3"}`:            `1E+3`,
		`"a\"b"`:                               `"a\"b"`,
		`null`:                                 `null`,
		`true`:                                 `true`,
		`[]`:                                   `[]`,
		`{}`:                                   `{}`,
		`[1, {"a": "x"}, [2]]`:                 `[ 1, { a: "x" }, [ 2 ] ]`,
		`{"$date": {"$numberLong": "5"}}`:      `new Date(5)`,
		`{"$oid": "0102030405060708090a0b0c"}`: `ObjectId('0102030405060708090a0b0c')`,
		`{"$timestamp": {"t": 1, "i": 2}}`:     `Timestamp(1, 2)`,
		`{"$regularExpression": {"pattern": "^a", "options": "i"}}`: `/^a/i`,
		`{"$binary": {"base64": "AQL/", "subType": "00"}}`:          `BinData(0, 0102FF)`,
		`{"$minKey": 1}`:       `MinKey`,
		`{"$undefined": true}`: `undefined`,
	} {
		if got := valueText(value(t, text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A message never shows a large value whole.
func TestValueTextIsBounded(t *testing.T) {
	long := value(t, `"`+strings.Repeat("x", 1<<20)+`"`)
	array := bson.Value{Type: bson.TypeArray, Data: appendArray(nil, []bson.Value{long, long, long, long})}
	many := bson.Value{Type: bson.TypeArray, Data: appendArray(nil, slices.Repeat([]bson.Value{bson.Null}, 100_000))}
	for _, v := range []bson.Value{long, array, many} {
		if n := len(valueText(v)); n > 3*maxText {
			t.Errorf("%d bytes", n)
		}
	}
}
