package backend

import "oxbow/internal/bson"

// AllowScan stands in the comment of a command that may read a large collection as a whole: guards and policies leave it alone.
const AllowScan = "oxbow:allow-scan"

// ScansCollection reports whether the reply to an explain tells of a plan that reads a collection as a whole: whether a COLLSCAN is among the stages of
// a winning plan (https://www.mongodb.com/docs/manual/reference/explain-results/#collection-scan), of one server or of any shard.
func ScansCollection(explained bson.Document) bool { return hasStage(explained, "COLLSCAN") }

// PlansNothing reports whether it tells of a plan over a collection that is not there.
func PlansNothing(explained bson.Document) bool {
	return hasStage(explained, "EOF") || hasStage(explained, "NONEXISTENT_PATH")
}

// planFields are the fields of an explain's reply below which winning plans lie; what a client's own documents show in lies below others.
var planFields = map[string]bool{
	"queryPlanner": true, "winningPlan": true, "queryPlan": true, "stages": true, "$cursor": true, "$geoNearCursor": true, "shards": true,
	"inputStage": true, "inputStages": true, "innerStage": true, "outerStage": true, "thenStage": true, "elseStage": true,
}

func hasStage(doc bson.Document, name string) bool {
	it := bson.Elements(doc)
	for it.Next() {
		key, v := string(it.Key()), it.Value()
		if key == "stage" {
			if s, ok := v.StringValueOK(); ok && s == name {
				return true
			}
		}
		if planFields[key] && (v.Type == bson.TypeDocument && hasStage(v.Data, name) || eachHasStage(key, v, name)) {
			return true
		}
	}
	return false
}

// eachHasStage looks into lists, and into the shards of an aggregation, which lie under their names.
func eachHasStage(key string, v bson.Value, name string) bool {
	if v.Type != bson.TypeArray && (v.Type != bson.TypeDocument || key != "shards") {
		return false
	}
	it := bson.Elements(v.Data)
	for it.Next() {
		if it.Value().Type == bson.TypeDocument && hasStage(it.Value().Data, name) {
			return true
		}
	}
	return false
}
