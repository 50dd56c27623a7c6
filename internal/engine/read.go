package engine

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Query says which documents, and in which order.
type Query struct {
	Filter  *query.Filter // nil: all
	Sort    *query.Sort   // nil: none
	Natural int           // ±1: scan in _id key order, no index
	Hint    bson.Value    // an index name, a key pattern, {$natural: ±1}, or Type 0
	Min     bson.Document // index bounds of min and max, with Hint
	Max     bson.Document
	Skip    int64
	Limit   int64 // 0: none; with a sort that no index gives, memory holds at most skip + limit documents
	// pinned keeps the cursor on its first snapshot however old that gets: an update of many documents must not meet its own results.
	pinned bool
	// distinct is the path whose values Distinct looks for, so that an index on it is worth having.
	distinct string
	// explained keeps the plans that were not chosen, and counting makes Explain show how Count would go about it.
	explained, counting bool
}
