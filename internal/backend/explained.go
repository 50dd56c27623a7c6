package backend

import (
	"strings"

	"oxbow/internal/bson"
)

// AllowScan stands in the comment of a command that may read a large collection as a whole: guards and policies leave it alone.
const AllowScan = "oxbow:allow-scan"

// ScansCollection reports whether the reply to an explain tells of a plan that reads a collection as a whole: whether a COLLSCAN is among the stages of
// a winning plan (https://www.mongodb.com/docs/manual/reference/explain-results/#collection-scan), of one server or of any shard.
func ScansCollection(explained bson.Document) bool { return hasStage(explained, "COLLSCAN") }

// WalksIndex reports whether a winning plan reads an index from one end to the other, or all of its strings, to filter what lies there: the bounds of the
// index's first key leave nothing out but single values, as those of $ne, $nin, $exists, a regular expression without a prefix, and of a hint on an index
// that the filter has nothing to do with (https://www.mongodb.com/docs/manual/reference/explain-results/#std-label-explain-results). A sparse or
// partial index holds what it was made to hold, and a DISTINCT_SCAN jumps from value to value: neither counts.
func WalksIndex(explained bson.Document) bool { return hasPlan(explained, walksIndex) }

func walksIndex(stage bson.Document) bool {
	name, _ := bson.Get(stage, "stage")
	if s, _ := name.StringValueOK(); s != "IXSCAN" || isTrue(stage, "isSparse") || isTrue(stage, "isPartial") {
		return false
	}
	bounds, _ := bson.Get(stage, "indexBounds")
	if bounds.Type != bson.TypeDocument {
		return false
	}
	_, first, ok := bson.First(bounds.Data)
	if !ok || first.Type != bson.TypeArray {
		return false
	}
	least, most := false, false
	for it := bson.Elements(first.Data); it.Next(); {
		text, _ := it.Value().StringValueOK()
		least = least || strings.Contains(text, "MinKey")
		most = most || strings.Contains(text, "MaxKey")
		if text == `["", {})` || text == `({}, ""]` {
			return true
		}
	}
	return least && most
}

func isTrue(doc bson.Document, key string) bool {
	v, _ := bson.Get(doc, key)
	b, _ := v.BooleanOK()
	return b
}

// PlansNothing reports whether it tells of a plan over a collection that is not there.
func PlansNothing(explained bson.Document) bool {
	return hasStage(explained, "EOF") || hasStage(explained, "NONEXISTENT_PATH")
}

// planFields are the fields of an explain's reply below which winning plans lie; what a client's own documents show in lies below others.
var planFields = map[string]bool{
	"queryPlanner": true, "winningPlan": true, "queryPlan": true, "stages": true, "$cursor": true, "$geoNearCursor": true, "shards": true,
	"inputStage": true, "inputStages": true, "innerStage": true, "outerStage": true, "thenStage": true, "elseStage": true,
}

func hasStage(explained bson.Document, name string) bool {
	return hasPlan(explained, func(stage bson.Document) bool {
		v, _ := bson.Get(stage, "stage")
		s, _ := v.StringValueOK()
		return s == name
	})
}

// hasPlan reports whether a stage of a winning plan is one that is asked for.
func hasPlan(doc bson.Document, is func(stage bson.Document) bool) bool {
	if is(doc) {
		return true
	}
	it := bson.Elements(doc)
	for it.Next() {
		key, v := string(it.Key()), it.Value()
		if planFields[key] && (v.Type == bson.TypeDocument && hasPlan(v.Data, is) || eachHasPlan(key, v, is)) {
			return true
		}
	}
	return false
}

// eachHasPlan looks into lists, and into the shards of an aggregation, which lie under their names.
func eachHasPlan(key string, v bson.Value, is func(bson.Document) bool) bool {
	if v.Type != bson.TypeArray && (v.Type != bson.TypeDocument || key != "shards") {
		return false
	}
	it := bson.Elements(v.Data)
	for it.Next() {
		if it.Value().Type == bson.TypeDocument && hasPlan(it.Value().Data, is) {
			return true
		}
	}
	return false
}
