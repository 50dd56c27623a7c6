// Package catalog knows the collections that have a layout: their partitions and indexes, kept in a database of a backend and
// served as immutable snapshots, one a command. It makes and drops physical collections.
//
// It does not decide what to drop (retention) nor when (maintain), and routes nothing (route).
//
// Several gateways may share it: see gateways.go.
//
// Invariants: state before effect: a partition's new state is stored before the physical change, and Open finishes or
// undoes what was cut short; a physical name is never used twice; a new partition has all indexes before the first
// document; no lock is held over I/O on the read path (Snapshot is a pointer load).
//
// plan, command and observe (snapshots) and maintain's jobs import it.
package catalog
