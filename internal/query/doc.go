// Package query holds MongoDB's query semantics on raw BSON: filters, projections, sort orders, update operators,
// expressions and aggregation stages. Each is compiled once a command and then applied to documents as bytes.
//
// It is not a planner and not an executor: it never reads a collection. A stage that needs other documents ($lookup)
// is handed a function for them.
//
// Invariants: pure (no I/O, no goroutine, no clock: now is passed in; record 0006 has the one exception); compiled values are immutable and safe for
// concurrent use; errors are *mongoerr.Error with MongoDB's code; nothing that is not built is ignored: it is
// refused by name; no map per document.
//
// Stages: $match, $project, $addFields, $set, $unset, $sort, $skip, $limit, $group, $unwind, $count, $sortByCount, $replaceRoot,
// $replaceWith, $lookup. expression_operators.go lists the operators of expressions, accumulator.go those of $group.
//
// Any room that looks into filters or documents may import it; it knows none of them.
package query
