package equivalence

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// refusal is a command that a plain collection takes and some layouts refuse.
type refusal struct {
	why     string
	by      func(layout) bool
	code    int32
	command func(*rapid.T) bson.D
}

// refusals are all differences between layouts that are errors: docs/differences.md, "Collections with a layout".
var refusals = []refusal{
	{
		"a document without the time field", byTime, 61,
		func(t *rapid.T) bson.D { return d("insert", "c", "documents", bson.A{d("_id", anID(t), "h", "x")}) },
	},
	{
		"a time that is no date", byTime, 2,
		func(t *rapid.T) bson.D {
			bad := rapid.SampledFrom([]any{"2024-02-28", nil, int64(1709078400), bson.A{day(0, 0)}, d("a", 1)}).Draw(t, "time")
			return d("insert", "c", "documents", bson.A{d("_id", anID(t), "t", bad)})
		},
	},
	{
		"a time far ahead", byTime, 2,
		func(t *rapid.T) bson.D {
			return d("insert", "c", "documents", bson.A{d("_id", anID(t), "t", day(4000, 0))})
		},
	},
	{
		"an array in the hash field", byHash, 14,
		func(t *rapid.T) bson.D {
			return d("insert", "c", "documents", bson.A{d("_id", anID(t), "t", day(0, 0), "h", bson.A{"x"})})
		},
	},
	{
		"a unique index without the layout's fields", layered, 67,
		func(*rapid.T) bson.D {
			return d("createIndexes", "c", "indexes", bson.A{d("key", d("n", 1), "name", "u", "unique", true)})
		},
	},
	{
		"an update of the time by an operator that computes", byTime, 66,
		func(t *rapid.T) bson.D {
			return d("update", "c", "updates", bson.A{d("q", bson.D{}, "u", d("$rename", d("a", "t")))})
		},
	},
	{
		"an update of the hash field by a pipeline", byHash, 66,
		func(t *rapid.T) bson.D {
			return d("update", "c", "updates", bson.A{d("q", d("_id", anID(t)), "u", bson.A{d("$set", d("h", "$a"))})})
		},
	},
}

func byTime(l layout) bool  { return l.time }
func byHash(l layout) bool  { return l.hash }
func layered(l layout) bool { return l.time || l.hash }
