package route

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Table is what routing needs of a collection: its layout and its Active partitions, ordered by Start, then Slot, then Generation. Two
// partitions of one range and slot, of different generations, may be active together after an undo; documents are placed in the later
// one. Ranges are equal or disjoint. Immutable.
type Table struct {
	Layout     Layout
	Partitions []Partition
}

// Place is where a document belongs.
type Place struct {
	Partition  int   // index into Table.Partitions, or -1: not made yet
	Slot       int   // -1 without a hash layout
	Start, End int64 // the cell to make, its neighbours already cut off, when Partition is -1
}

// Route is the answer to a filter.
type Route struct {
	Partitions []int // indexes into Table.Partitions, ascending
	// One is set when the filter pins every field of the layout, so that it concerns at most one place even if partitions are made later:
	// one hash slot, one calendar cell. Its Partition is -1 when that place has not been made.
	One *Place

	table *Table
	boxes boxes
}

// Reason says in words which partitions and why: "date >= 2001-01-15 and < 2001-01-22: 7 of 90 partitions".
func (r Route) Reason() string { panic("unbuilt") }

type boxes []struct{}

// Place finds a document's place at now (milliseconds). Errors are what the client gets: ShardKeyNotFound for a missing time field, BadValue for a
// wrong one, and for times beyond ahead or late under Reject.
func (t *Table) Place(doc bson.Document, now int64) (Place, error) { panic("unbuilt") }

// Route finds the partitions that documents matching f can be in. A nil filter matches everything. The route is right for the simple collation only: under
// another one strings that differ can match, and the caller must not prune by it.
func (t *Table) Route(f *query.Filter) Route { panic("unbuilt") }
