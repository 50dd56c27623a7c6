package route

import (
	"math"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Partition is one physical collection of a collection.
type Partition struct {
	Backend    string
	Database   string
	Collection string
	Slot       int   // hash slot, or -1 without a hash layout
	Start, End int64 // time range [Start, End) in milliseconds since 1970, or MinTime and MaxTime
	Generation int   // counts how often this slot and range were made; part of the physical name from 2 on
	State      State
}

// The range of a partition without a time layout.
const (
	MinTime int64 = math.MinInt64
	MaxTime int64 = math.MaxInt64
)

// State is where a partition is in its life. Only Active ones are routed to.
type State uint8

// The states, in order.
const (
	Creating State = iota // recorded, perhaps not made yet
	Active
	Hidden   // out of routing; undo brings it back
	Dropping // recorded, perhaps not dropped yet
)

// Table is what routing needs of a collection: its layout and its Active partitions, ordered by Start, then Slot. Immutable.
type Table struct {
	Layout     Layout
	Partitions []Partition
}

// Place is where a document belongs.
type Place struct {
	Partition  int // index into Table.Partitions, or -1: not made yet
	Slot       int
	Start, End int64 // the cell to make, its neighbours already cut off, when Partition is -1
}

// Place finds a document's place at now (milliseconds). Errors are what the client gets: ShardKeyNotFound-like for a missing time field, BadValue for a
// wrong one, and for times beyond ahead or late under Reject.
func (t *Table) Place(doc bson.Document, now int64) (Place, error) { panic("unbuilt") }

// Route is the answer to a filter.
type Route struct {
	Partitions []int  // indexes into Table.Partitions, ascending
	Reason     string // in words: "time >= 2001-01-15 and < 2001-01-22 on date: 7 of 90 partitions"
	// One is set when the filter pins every field of the layout to one value, so that it concerns at most one place even if partitions are made later.
	One *Place
}

// Route finds the partitions that documents matching f can be in.
func (t *Table) Route(f *query.Filter) Route { panic("unbuilt") }
