package route

import (
	"cmp"
	"math"
	"slices"
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
	Since      int64 // when it came into its state, in milliseconds since 1970
	Restored   bool  // brought back by hand after it was hidden: retention leaves it alone
	Opening    bool  // in a Table: it is read already and not written to yet, since not every gateway is known to read it

	// The catalog's own notes of the stored document.
	Change int64  // counts its versions
	By     string // the gateway that made the last one
	Was    State  // its state before the last one that is another; of no meaning while it is Creating
}

// Name returns the physical namespace, "database.collection". It is unique among a collection's partitions.
func (p Partition) Name() string { return p.Database + "." + p.Collection }

// The range of a partition without a time layout.
const (
	MinTime int64 = math.MinInt64
	MaxTime int64 = math.MaxInt64
)

// State is where a partition is in its life. Only Active ones are written to; they are read, and where several gateways share a catalog those that
// are about to become Active, too.
type State uint8

// The states, in order.
const (
	Creating State = iota // recorded, perhaps not made yet
	Active
	Hidden    // out of routing; undo brings it back
	Dropping  // recorded, perhaps not dropped yet
	Returning // was Hidden and is on its way to Active, where several gateways share a catalog
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"creating", "active", "hidden", "dropping", "returning"}[s]
}

// States are all states.
func States() []State { return []State{Creating, Active, Hidden, Dropping, Returning} }

// Sort orders partitions as a Table has them: by Start, then Slot, then Generation.
func Sort(partitions []Partition) {
	slices.SortFunc(partitions, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Generation, b.Generation))
	})
}
