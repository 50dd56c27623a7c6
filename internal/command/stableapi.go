package command

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// unstableStages are the pipeline stages outside of version 1 of the Stable API, $collStats excepted, which depends on its argument
// (https://www.mongodb.com/docs/manual/reference/stable-api/).
var unstableStages = []string{
	"$currentOp", "$indexStats", "$listLocalSessions", "$listSampledQueries", "$listSearchIndexes", "$listSessions", "$planCacheStats",
	"$search", "$searchMeta", "$shardedDataDistribution", "$vectorSearch",
}

// unstableFields are the fields of stable commands that are themselves outside of version 1.
var unstableFields = map[string][]string{
	"find":   {"awaitData", "max", "min", "noCursorTimeout", "oplogReplay", "returnKey", "showRecordId", "tailable"},
	"create": {"autoIndexId", "capped", "indexOptionDefaults", "max", "size", "storageEngine"},
}

// checkStable refuses what a client that set apiStrict may not use of a command that it may use.
func checkStable(req *Request) error {
	fields := unstableFields[req.Name]
	it := bson.Elements(req.Body)
	it.Next()
	for it.Next() {
		key := it.Key()
		if contains(fields, key) {
			return mongoerr.New(mongoerr.APIStrictError, "BSON field '%s.%s' is not allowed with apiStrict:true.", req.Name, key)
		}
		if req.Name == "aggregate" && string(key) == "pipeline" {
			if err := checkStableStages(it.Value(), req.APIVersion); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkStableStages looks at the stages of a pipeline and of those inside $lookup. What is malformed is its parser's to refuse.
func checkStableStages(pipeline bson.Value, version string) error {
	stages, _ := pipeline.ArrayOK()
	it := bson.Elements(stages)
	for stages != nil && it.Next() {
		stage, ok := it.Value().DocumentOK()
		if !ok {
			continue
		}
		name, argument, _ := bson.First(stage)
		if slices.Contains(unstableStages, name) || name == "$collStats" && !countsOnly(argument) {
			return mongoerr.New(mongoerr.APIStrictError, "%s is not allowed with 'apiStrict: true' in API Version %s", name, version)
		}
		if name != "$lookup" || argument.Type != bson.TypeDocument {
			continue
		}
		if inner, ok := bson.Get(argument.Data, "pipeline"); ok {
			if err := checkStableStages(inner, version); err != nil {
				return err
			}
		}
	}
	return nil
}

// countsOnly reports whether $collStats asks for nothing but count, which drivers count with.
func countsOnly(argument bson.Value) bool {
	options, ok := argument.DocumentOK()
	if !ok {
		return false
	}
	it := bson.Elements(options)
	for it.Next() {
		if string(it.Key()) != "count" {
			return false
		}
	}
	return true
}
