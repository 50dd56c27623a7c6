// Package ways compares ways to get rid of old documents: each runs on the same data under the same foreground load, which is measured without it first.
//
// It knows no way but those that need nothing more than a driver (one remove, removes of slices, a TTL index, drops); the others are given to it.
//
// Invariants: the data of a run is a function of its options and one instant; the foreground is open-loop and touches nothing that has to go; what has to
// go and what has to stay is counted after each run; a figure that a server does not report is nil, never zero; a run whose data may have fitted into the
// server's memory says so. Rendering is a pure function of a Result.
//
// Only cmd/oxbow imports it.
package ways
