// Package mongoerr is the one table of errors that a client can see: MongoDB's code, its code name, the message and the
// labels that make drivers retry (https://www.mongodb.com/docs/manual/reference/error-codes/).
//
// It is not for errors inside Oxbow: those are plain Go errors, wrapped with %w, and become an Error only where
// a reply is written.
//
// Invariants: every Error has a code of the table, or one of MongoDB's numbers without a name (Location…) that stands where the one
// place is that uses it; messages name the input at fault; no I/O.
//
// Any package may import it.
package mongoerr
