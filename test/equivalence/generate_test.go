package equivalence

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// commands draws a command that all layouts take. Where a command works on one document of several, what it does must not depend on which one: its
// filter has an _id, or a sort decides.
func commands(t *rapid.T) command {
	return pick(t, "command",
		func() command { return insert(t) }, func() command { return insert(t) }, func() command { return insert(t) },
		func() command { return updateOne(t) }, func() command { return updateOne(t) }, func() command { return updateMany(t) },
		func() command { return remove(t) }, func() command { return findAndModify(t) },
		func() command { return find(t) }, func() command { return find(t) }, func() command { return find(t) },
		func() command { return count(t) }, func() command { return distinct(t) },
		func() command { return aggregate(t) }, func() command { return aggregate(t) }, func() command { return index(t) })
}

func insert(t *rapid.T) command {
	var docs bson.A
	for range rapid.IntRange(1, 8).Draw(t, "documents") {
		docs = append(docs, document(t, anID(t)))
	}
	if rapid.IntRange(0, 9).Draw(t, "bad _id") == 0 {
		docs = append(docs, append(bson.D{{Key: "_id", Value: bson.A{1}}}, keys(1)...))
	}
	to := rapid.SampledFrom([]string{"c", "c", "c", "d"}).Draw(t, "collection")
	return command{body: d("insert", to, "documents", docs, "ordered", rapid.Bool().Draw(t, "ordered")), compare: exact}
}

// byID draws a filter that at most one document matches.
func byID(t *rapid.T, id int) bson.D {
	f := bson.D{{Key: "_id", Value: int32(id)}}
	if rapid.Bool().Draw(t, "with place") {
		f = placed(id)
	}
	if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
		f = withCondition(f, condition(t))
	}
	return f
}

// modification draws an update of one document, which may fail on it. It leaves n a number and l an array of numbers, so that updateMany fails on none.
func modification(t *rapid.T, id int) any {
	path := rapid.SampledFrom([]string{"a", "b", "b.c", "b.d", "a.0", "a.$[]", "u"}).Draw(t, "updated path")
	numeric := rapid.SampledFrom([]string{path, "n"}).Draw(t, "numeric path")
	list := rapid.SampledFrom([]string{path, "l"}).Draw(t, "list path")
	return pick(t, "update",
		func() any { return d("$set", d(path, value(t, 2))) },
		func() any { return d("$unset", d(rapid.SampledFrom([]string{path, "n", "l"}).Draw(t, "unset"), "")) },
		func() any {
			return d(rapid.SampledFrom([]string{"$inc", "$mul", "$min", "$max"}).Draw(t, "op"), d(numeric, number(t)))
		},
		func() any { return d("$rename", d(path, "renamed")) },
		func() any { return d("$push", d(path, value(t, 1))) },
		func() any { return d("$push", d(list, number(t))) },
		func() any {
			return d("$push", d(list, d("$each", bson.A{number(t), number(t)}, "$sort", direction(t), "$slice", rapid.IntRange(-3, 3).Draw(t, "slice"))))
		},
		func() any { return d("$addToSet", d(list, number(t))) },
		func() any { return d("$pull", d(list, scalar(t))) },
		func() any { return d("$pull", d(list, d("$gte", number(t)))) },
		func() any { return d("$pop", d(list, direction(t))) },
		func() any { return d("$inc", d("l.$[]", number(t))) },
		func() any { return d("$set", d("a", scalar(t)), "$inc", d("n", 1)) },
		func() any { return d("$set", append(keys(id), bson.E{Key: "n", Value: number(t)})) },
		func() any { return placed(id, bson.E{Key: "a", Value: value(t, 1)}) },
		func() any {
			return bson.A{d("$set", d("a", d("$ifNull", bson.A{"$n", "none"}), "b", "$l")), d("$unset", "n")}
		})
}

// updateOne draws updates of one document each. Those of an unordered command are of neighbours, of which no two can have one unique key: they
// may run in any order.
func updateOne(t *rapid.T) command {
	ordered := rapid.Bool().Draw(t, "ordered")
	first := anID(t)
	var updates bson.A
	for i := range rapid.IntRange(1, 3).Draw(t, "statements") {
		id := anID(t)
		if !ordered {
			id = first + i
		}
		u := pick(t, "kind of update",
			func() bson.D { return d("q", byID(t, id), "u", modification(t, id)) },
			func() bson.D { return d("q", byID(t, id), "u", modification(t, id)) },
			func() bson.D { return d("q", placed(id), "u", modification(t, id), "upsert", true) },
			func() bson.D {
				return d("q", d("_id", id), "u", placed(id, bson.E{Key: "n", Value: number(t)}), "upsert", true)
			},
			func() bson.D {
				return d("q", d("_id", id), "u", d("$set", d("a", value(t, 1)), "$setOnInsert", keys(id)), "upsert", true)
			},
			func() bson.D {
				return d("q", d("_id", id, "l", d("$gte", number(t))), "u", d("$inc", d("l.$", number(t))))
			},
			func() bson.D {
				return d("q", placed(id), "u", d("$set", d("b", scalar(t))), "upsert", true, "multi", true)
			})
		updates = append(updates, u)
	}
	return command{body: d("update", "c", "updates", updates, "ordered", ordered), compare: exact}
}

// updateMany draws updates of many documents that fail on none: what a failure leaves undone is a matter of order.
func updateMany(t *rapid.T) command {
	f := filter(t, 1)
	u := pick(t, "update of many",
		func() bson.D { return d("q", f, "u", d("$inc", d("n", number(t)))) },
		func() bson.D { return d("q", f, "u", d("$set", d("a", value(t, 1)), "$unset", d("b", 1))) },
		func() bson.D { return d("q", f, "u", d("$set", d("b", scalar(t)))) },
		func() bson.D { return d("q", f, "u", bson.A{d("$set", d("a", d("$type", "$b")))}) },
		func() bson.D { return d("q", f, "u", d("$addToSet", d("l", number(t)))) },
		func() bson.D {
			return d("q", d("$and", bson.A{f, d("l", d("$type", "array"))}), "u", d("$mul", d("l.$[x]", 2)),
				"arrayFilters", bson.A{d("x", d("$gte", number(t)))})
		})
	return command{body: d("update", "c", "updates", bson.A{append(u, bson.E{Key: "multi", Value: true})}), compare: exact}
}

func remove(t *rapid.T) command {
	one := d("q", byID(t, anID(t)), "limit", 1)
	if rapid.IntRange(0, 2).Draw(t, "many") == 0 {
		one = d("q", withCondition(filter(t, 1), bson.E{Key: "_id", Value: d("$gt", rapid.IntRange(0, maxID).Draw(t, "above"))}), "limit", 0)
	}
	return command{body: d("delete", "c", "deletes", bson.A{one}), compare: exact}
}

func findAndModify(t *rapid.T) command {
	id := anID(t)
	body := d("findAndModify", "c")
	filtered := rapid.Bool().Draw(t, "by filter")
	if filtered {
		body = append(body, d("query", filter(t, 1), "sort", order(t))...)
	} else {
		body = append(body, d("query", byID(t, id))...)
	}
	if !filtered && rapid.IntRange(0, 3).Draw(t, "upsert") == 0 {
		body = d("findAndModify", "c", "query", placed(id), "update", modification(t, id), "new", rapid.Bool().Draw(t, "new"), "upsert", true)
	} else if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
		body = append(body, d("remove", true)...)
	} else if filtered {
		body = append(body, d("update", d("$set", d("a", value(t, 1), "b", scalar(t))), "new", rapid.Bool().Draw(t, "new"))...)
	} else {
		body = append(body, d("update", modification(t, id), "new", rapid.Bool().Draw(t, "new"))...)
	}
	if rapid.IntRange(0, 2).Draw(t, "fields") == 0 {
		body = append(body, d("fields", d("a", 1, "n", 1))...)
	}
	return command{body: body, compare: exact}
}

func projection(t *rapid.T) bson.D {
	return pick(t, "projection",
		func() bson.D { return d("a", 1, "b.c", 1) },
		func() bson.D { return d("t", 0, "b", 0) },
		func() bson.D { return d("_id", 0, "h", 1, "l", d("$slice", 1)) },
		func() bson.D { return d("x", d("$add", bson.A{"$_id", 1}), "a", 1) },
		func() bson.D { return d("l", d("$elemMatch", d("$gte", number(t)))) })
}

func find(t *rapid.T) command {
	body := d("find", "c", "filter", filter(t, 2))
	compare := multiset
	if rapid.Bool().Draw(t, "sorted") {
		body = append(body, bson.E{Key: "sort", Value: order(t)})
		compare = inOrder
		if rapid.Bool().Draw(t, "skips") {
			body = append(body, bson.E{Key: "skip", Value: rapid.IntRange(0, 6).Draw(t, "skip")})
		}
		if rapid.Bool().Draw(t, "limits") {
			body = append(body, bson.E{Key: "limit", Value: rapid.IntRange(0, 6).Draw(t, "limit")})
		}
	}
	if compare == multiset && rapid.IntRange(0, 4).Draw(t, "ties") == 0 {
		body = append(body, bson.E{Key: "sort", Value: d("n", direction(t))}) // the order of ties is not compared, so none is
	}
	var before bson.D
	if rapid.IntRange(0, 6).Draw(t, "hints") == 0 {
		// The index is there: a hint of none is an error only where a partition is asked (docs/differences.md).
		before = createIndex(d("a", 1), "a_1").body
		body = append(body, bson.E{Key: "hint", Value: rapid.SampledFrom([]any{"_id_", "a_1", d("a", 1), d("$natural", 1)}).Draw(t, "hint")})
	}
	if rapid.Bool().Draw(t, "projects") {
		body = append(body, bson.E{Key: "projection", Value: projection(t)})
	}
	if rapid.Bool().Draw(t, "batches") {
		body = append(body, bson.E{Key: "batchSize", Value: rapid.IntRange(0, 5).Draw(t, "batchSize")})
	}
	return command{body: body, compare: compare, before: before}
}

func count(t *rapid.T) command {
	body := d("count", "c", "query", filter(t, 2))
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		body = append(body, d("skip", rapid.IntRange(0, 5).Draw(t, "skip"), "limit", rapid.IntRange(0, 5).Draw(t, "limit"))...)
	}
	return command{body: body, compare: exact}
}

func distinct(t *rapid.T) command {
	key := rapid.SampledFrom([]string{"a", "b.c", "h", "t", "n", "l", "_id"}).Draw(t, "key")
	return command{body: d("distinct", "c", "key", key, "query", filter(t, 1)), compare: asSet}
}

// aggregate draws pipelines: whatever depends on the order of documents stands behind a sort that decides it.
func aggregate(t *rapid.T) command {
	pipeline := bson.A{}
	if rapid.Bool().Draw(t, "match") {
		pipeline = append(pipeline, d("$match", filter(t, 2)))
	}
	compare := byValue
	rest := pick(t, "stages",
		func() []any {
			return []any{d("$group", d("_id", rapid.SampledFrom([]string{"$h", "$a", "$n", "$t"}).Draw(t, "key"),
				"count", d("$sum", 1), "sum", d("$sum", "$n"), "least", d("$min", "$b"), "most", d("$max", "$l")))}
		},
		func() []any {
			return []any{d("$sort", order(t)), d("$group", d("_id", nil, "first", d("$first", "$a"), "last", d("$last", "$b"),
				"all", d("$push", "$_id"), "average", d("$avg", "$_id")))}
		},
		func() []any {
			compare = inOrder
			return []any{d("$unwind", "$l"), d("$sort", d("_id", direction(t), "l", 1)), d("$project", d("_id", 1, "h", 1, "day", d("$dayOfMonth", "$t")))}
		},
		func() []any {
			return []any{d("$unwind", d("path", "$a", "preserveNullAndEmptyArrays", true, "includeArrayIndex", "i"))}
		},
		func() []any {
			compare = inOrder
			return []any{d("$sort", order(t)), d("$skip", rapid.IntRange(0, 4).Draw(t, "skip")), d("$limit", rapid.IntRange(1, 6).Draw(t, "limit")),
				d("$addFields", d("x", d("$concatArrays", bson.A{d("$ifNull", bson.A{"$l", bson.A{}}), bson.A{1}}))), d("$unset", "b")}
		},
		func() []any { return []any{d("$count", "n")} },
		func() []any { return []any{d("$sortByCount", "$h"), d("$sort", d("count", -1))} },
		func() []any {
			return []any{d("$lookup", d("from", "d", "localField", rapid.SampledFrom([]string{"n", "a", "_id", "h"}).Draw(t, "local"),
				"foreignField", rapid.SampledFrom([]string{"n", "a", "_id", "h"}).Draw(t, "foreign"), "as", "m")), d("$unwind", "$m")}
		},
		func() []any {
			return []any{d("$lookup", d("from", "d", "let", d("v", "$_id"), "as", "m", "pipeline", bson.A{
				d("$match", d("$expr", d("$gte", bson.A{"$_id", "$$v"}))), d("$sort", d("_id", 1)), d("$limit", 2)}))}
		},
		func() []any {
			return []any{d("$lookup", d("from", "c", "localField", "l", "foreignField", "n", "as", "m")), d("$unwind", "$m"),
				d("$group", d("_id", "$_id", "n", d("$sum", 1), "least", d("$min", "$m._id")))}
		},
		func() []any {
			return []any{d("$group", d("_id", d("h", "$h", "day", d("$dayOfYear", "$t")), "n", d("$sum", 1))), d("$match", d("n", d("$gt", 1)))}
		},
		func() []any {
			return []any{d("$replaceRoot", d("newRoot", d("id", "$_id", "place", bson.A{"$t", "$h"})))}
		},
		func() []any { return nil })
	pipeline = append(pipeline, rest...)
	return command{body: d("aggregate", "c", "pipeline", pipeline, "cursor", d("batchSize", rapid.IntRange(0, 20).Draw(t, "batchSize"))), compare: compare}
}

// there makes the collection, if it is not there. An upsert that fails leaves its partition behind, and with it a collection of a layout; of a plain one of the
// embedded engine it leaves nothing.
var there = d("create", "c")

// index draws commands on indexes. Those with unique keys hold the layouts' fields.
func index(t *rapid.T) command {
	return pick(t, "index",
		func() command { return createIndex(d("a", 1), "a_1") },
		func() command { return createIndex(d("b.c", -1, "n", 1), "bc") },
		func() command { return createIndex(d("t", 1), "t_1") },
		func() command { return createIndex(d("l", 1, "_id", 1), "l_id") },
		func() command {
			return createIndex(d("n", 1), "n_sparse", bson.E{Key: "sparse", Value: true})
		},
		func() command {
			return createIndex(d("a", -1), "partial", bson.E{Key: "partialFilterExpression", Value: d("n", d("$gt", 0))})
		},
		func() command {
			return createIndex(d("t", 1, "h", 1, "u", 1), "unique", bson.E{Key: "unique", Value: true})
		},
		func() command {
			name := rapid.SampledFrom([]string{"a_1", "bc", "unique", "partial", "*"}).Draw(t, "dropped")
			return command{body: d("dropIndexes", "c", "index", name), compare: codeOnly, before: there}
		},
		func() command { return command{body: d("listIndexes", "c"), compare: multiset, before: there} })
}

func createIndex(key bson.D, name string, more ...bson.E) command {
	return command{body: d("createIndexes", "c", "indexes", bson.A{append(d("key", key, "name", name), more...)}), compare: codeOnly}
}
