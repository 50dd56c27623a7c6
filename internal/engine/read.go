package engine

import (
	"context"

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
	// NoCache keeps the blocks that a scan reads out of the block cache, for jobs and samples.
	NoCache bool
	// pinned keeps the cursor on its first snapshot however old that gets: an update of many documents must not meet its own results.
	pinned bool
}

// Cursor is a stream of whole documents on a snapshot: writes after its opening don't show, until the snapshot is older than
// Options.SnapshotAge; then it goes on from its last key on a new one. A cursor is used by one goroutine at a time.
type Cursor struct{}

// Find opens a cursor.
func (t *Table) Find(ctx context.Context, q Query) (*Cursor, error) { panic("unbuilt") }

// Next returns the next document, good until the next call, or nil at the end.
func (c *Cursor) Next(ctx context.Context) (bson.Document, error) { panic("unbuilt") }

// Close releases the snapshot.
func (c *Cursor) Close() error { panic("unbuilt") }

// Examined reports the index keys and documents read so far.
func (c *Cursor) Examined() (keys, documents int64) { panic("unbuilt") }

// Get returns the document with an _id, appended to dst, and whether it exists: the shortest way, which Find takes by itself for {_id: value}.
func (t *Table) Get(dst []byte, id bson.Value) ([]byte, bool, error) { panic("unbuilt") }

// Count counts the documents of a query, skip and limit applied; without a filter from the counter, and from index keys alone where they decide the filter.
func (t *Table) Count(ctx context.Context, q Query) (int64, error) { panic("unbuilt") }

// Distinct calls yield for each distinct value at path among the query's documents, array elements one by one, in the order of bson.Compare where an index gives
// them and first seen otherwise.
func (t *Table) Distinct(ctx context.Context, path bson.Path, q Query, yield func(bson.Value) error) error {
	panic("unbuilt")
}

// Explain returns the chosen plan as MongoDB's winningPlan stage tree (COLLSCAN, IDHACK, IXSCAN with indexBounds, FETCH, SORT, LIMIT, SKIP, COUNT, COUNT_SCAN),
// with the reason for the choice in `reason`, and with run also executionStats.
func (t *Table) Explain(ctx context.Context, q Query, run bool) (bson.Document, error) {
	panic("unbuilt")
}
