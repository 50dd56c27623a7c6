package query

import (
	"context"
	"testing"
	"time"

	"oxbow/internal/bson"
)

// FuzzPipeline compiles arbitrary bytes as a pipeline and runs it: nothing panics, and what comes out is BSON.
func FuzzPipeline(f *testing.F) {
	for _, source := range []string{
		`[{"$match": {"$expr": {"$gt": ["$a", 1]}}}, {"$group": {"_id": "$k", "n": {"$sum": "$a"}, "all": {"$push": "$$ROOT"}}}]`,
		`[{"$unwind": {"path": "$l", "includeArrayIndex": "i.j", "preserveNullAndEmptyArrays": true}}, {"$sort": {"l": -1}}, {"$limit": 3}]`,
		`[{"$project": {"x": {"$map": {"input": "$l", "as": "e", "in": {"$concat": ["$s", {"$toString": "$$e"}]}}}, "d": {"$dateTrunc": {"date": "$t", "unit": "week", "timezone": "Europe/Berlin"}}}}]`,
		`[{"$lookup": {"from": "other", "let": {"v": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$v"]}}}], "as": "j.k"}}, {"$set": {"j.n": {"$size": "$j.k"}}}]`,
		`[{"$replaceRoot": {"newRoot": {"$mergeObjects": ["$o", {"r": {"$reduce": {"input": "$l", "initialValue": 0, "in": {"$add": ["$$value", 1]}}}}]}}}, {"$sortByCount": "$r"}]`,
		`[{"$addFields": {"x": {"$switch": {"branches": [{"case": {"$regexMatch": {"input": "$s", "regex": "t.x", "options": "i"}}, "then": {"$dateToString": {"date": "$t", "format": "%Y-%V"}}}], "default": {"$convert": {"input": "$s", "to": "int", "onError": null}}}}}}, {"$unset": "o.x"}, {"$count": "n"}]`,
		`[{"$project": {"z": {"$zip": {"inputs": ["$l", "$m"], "useLongestLength": true}}, "p": {"$pow": ["$a", "$dec"]}, "s": {"$sortArray": {"input": "$m", "sortBy": {"x": 1}}}, "o": {"$arrayToObject": {"$objectToArray": "$o"}}}}]`,
	} {
		f.Add([]byte(value(f, source).Data))
	}
	docs := documents(f, `[
		{"_id": 1, "a": 5, "k": "x", "s": "Text", "l": [1, 2.5, "z", null], "m": [{"x": 2}, {"x": 1}], "o": {"x": 1, "y": {"z": []}}, "t": {"$date": "2024-02-29T12:00:00Z"}, "dec": {"$numberDecimal": "1.25"}},
		{"_id": {"$oid": "65ba1e600000000000000000"}, "a": {"$numberLong": "-9223372036854775808"}, "l": [], "m": [[1], {"x": [3, 4]}], "t": {"$timestamp": {"t": 5, "i": 1}}, "n": null},
		{"_id": "s", "a": {"$numberDouble": "NaN"}, "k": {"$minKey": 1}, "l": {"x": [1]}, "s": "", "re": {"$regularExpression": {"pattern": "a", "options": "i"}}, "b": {"$binary": {"base64": "AAEC", "subType": "00"}}, "t": {"$date": {"$numberLong": "-9223372036854775808"}}}]`)
	f.Fuzz(func(t *testing.T, stages []byte) {
		if len(stages) > 4096 || bson.Validate(stages, bson.MaxDepth) != nil {
			return
		}
		opts := PipelineOptions{Env: Env{NowMillis: testNow}, MaxBytes: 1 << 20, Lookup: collection(t, docs)}
		p, err := ParsePipeline(stages, opts)
		if err != nil {
			return
		}
		p.Head()
		p.Needs()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		out := p.Run(&listed{docs: docs})
		defer out.Close()
		for range 1000 {
			doc, err := out.Next(ctx)
			if err != nil || doc == nil {
				return
			}
			if err := bson.Validate(doc, 2*bson.MaxDepth); err != nil {
				t.Fatalf("%s gives %x: %v", extJSON(stages), doc, err)
			}
		}
	})
}
