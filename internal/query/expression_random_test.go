package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
)

// listOperators take arguments in a list, namedOperators take them by name.
var listOperators = strings.Fields(`$eq $ne $gt $gte $lt $lte $cmp $and $or $not $cond $ifNull $add $subtract $multiply $divide $mod $abs
 $ceil $floor $round $trunc $sqrt $pow $exp $ln $log $log10 $sum $avg $min $max $stdDevPop $stdDevSamp $concat $substr $substrBytes $substrCP $toLower
 $toUpper $strcasecmp $strLenBytes $strLenCP $split $indexOfBytes $indexOfCP $arrayElemAt $first $last $size $isArray $slice $concatArrays
 $in $indexOfArray $reverseArray $range $setUnion $setIntersection $setDifference $setEquals $setIsSubset $anyElementTrue $allElementsTrue
 $arrayToObject $objectToArray $mergeObjects $type $isNumber $toString $toInt $toLong $toDouble $toDecimal $toBool $toDate $toObjectId
 $year $month $dayOfMonth $dayOfYear $dayOfWeek $hour $minute $second $millisecond $week $isoWeek $isoWeekYear $isoDayOfWeek`)

var namedOperators = map[string][]string{
	"$map":            {"input", "in"},
	"$filter":         {"input", "cond", "limit"},
	"$reduce":         {"input", "initialValue", "in"},
	"$zip":            {"inputs"},
	"$trim":           {"input", "chars"},
	"$replaceAll":     {"input", "find", "replacement"},
	"$regexFindAll":   {"input", "regex"},
	"$regexMatch":     {"input", "regex"},
	"$convert":        {"input", "to", "onError"},
	"$dateToString":   {"date", "format", "timezone"},
	"$dateFromString": {"dateString", "format", "timezone", "onError"},
	"$dateToParts":    {"date", "timezone", "iso8601"},
	"$dateFromParts":  {"year", "month", "day", "hour", "second", "millisecond", "timezone"},
	"$dateTrunc":      {"date", "unit", "binSize", "timezone", "startOfWeek"},
	"$dateAdd":        {"startDate", "unit", "amount", "timezone"},
	"$dateSubtract":   {"startDate", "unit", "amount"},
	"$dateDiff":       {"startDate", "endDate", "unit", "timezone"},
	"$setField":       {"field", "input", "value"},
	"$getField":       {"field", "input"},
	"$let":            {"vars", "in"},
	"$cond":           {"if", "then", "else"},
}

var someLeaves = []string{
	`"$a"`, `"$l"`, `"$m.x"`, `"$o"`, `"$s"`, `"$t"`, `"$dec"`, `"$none"`, `"$$this"`, `"$$ROOT"`, `"$big"`, `"$n"`, `"$f"`, `"$e"`,
	`0`, `1`, `-3`, `2.5`, `1e300`, `{"$literal": -0.0}`, `{"$numberDecimal": "1E+6000"}`, `{"$numberDecimal": "NaN"}`, `{"$numberLong": "9223372036854775807"}`,
	`"text"`, `"%Y-%m-%d"`, `"day"`, `"week"`, `"month"`, `"hour"`, `"year"`, `"Europe/Berlin"`, `"+05:30"`, `"int"`, `"date"`, `"x"`, `""`, `"ü"`,
	`null`, `true`, `[]`, `[1, "$a"]`, `{"k": "$s", "v": 1}`, `{"$date": {"$numberLong": "-9223372036854775808"}}`, `{"$minKey": 1}`,
	`{"$regularExpression": {"pattern": "(e)|x", "options": "i"}}`,
}

func someExpression(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom(someLeaves).Draw(t, "value")
	}
	if rapid.IntRange(0, 2).Draw(t, "named") > 0 {
		op := rapid.SampledFrom(listOperators).Draw(t, "op")
		args := make([]string, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range args {
			args[i] = someExpression(t, depth-1)
		}
		return fmt.Sprintf(`{"%s": [%s]}`, op, strings.Join(args, ", "))
	}
	op := rapid.SampledFrom(slices.Sorted(maps.Keys(namedOperators))).Draw(t, "op")
	var args []string
	for _, p := range namedOperators[op] {
		switch {
		case p == "vars":
			args = append(args, fmt.Sprintf(`"vars": {"this": %s}`, someExpression(t, depth-1)))
		case p == "inputs":
			args = append(args, fmt.Sprintf(`"inputs": [%s, %s]`, someExpression(t, depth-1), someExpression(t, depth-1)))
		case len(args) < 2 || rapid.Bool().Draw(t, "given"):
			args = append(args, fmt.Sprintf(`"%s": %s`, p, someExpression(t, depth-1)))
		}
	}
	return fmt.Sprintf(`{"%s": {%s}}`, op, strings.Join(args, ", "))
}

// TestRandomExpressions: whatever its arguments are, an operator gives an error or a value that is BSON, and the same a second time.
func TestRandomExpressions(t *testing.T) {
	doc := document(t, `{"a": 5, "l": [3, 1.5, "z", null], "m": [{"x": 2}, {"x": [1]}, 7], "o": {"x": 1, "y": {"z": []}}, "s": "Grüße 12", "n": null, "f": -2.25, "e": "",
		"t": {"$date": "2024-02-29T12:34:56.789Z"}, "dec": {"$numberDecimal": "1.25"}, "big": {"$numberLong": "-9223372036854775808"}}`)
	values := 0
	rapid.Check(t, func(rt *rapid.T) {
		source := `{"$let": {"vars": {"this": "$l"}, "in": ` + someExpression(rt, rapid.IntRange(1, 3).Draw(rt, "depth")) + `}}`
		e, err := ParseExpression(value(t, source), Env{NowMillis: testNow})
		if err != nil {
			return
		}
		var s Scratch
		v, err := e.Eval(doc, &s)
		if err != nil {
			return
		}
		values++
		result := finish(appendField(begin(nil), "v", v), 0)
		if err := bson.Validate(result, 2*bson.MaxDepth); err != nil {
			rt.Fatalf("%s gives %s %x: %v", source, bson.TypeName(v.Type), v.Data, err)
		}
		again, err := e.Eval(doc, &s)
		if err != nil || string(finish(appendField(begin(nil), "v", again), 0)) != string(result) {
			rt.Fatalf("%s gives %s, then %s (%v)", source, extJSON(result), valueText(again), err)
		}
	})
	if values == 0 {
		t.Error("all failed")
	}
}
