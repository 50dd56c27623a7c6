// Package plan turns a command on a collection and a snapshot of the catalog into what will be sent where and how the
// answers merge. A plan is printable data: explain shows it, tests compare it, exec runs it.
//
// It sends nothing and reads no clock: now is passed in, partitions that are missing are named for the caller to make.
//
// Invariants: everything a client could have got wrong is refused here, before anything is sent; a filter is never
// widened; the partitions of a read or of a write with a filter come from route, those of an insert from its documents.
//
// command and exec import it.
package plan
