// Package bson reads and orders raw BSON without decoding it: element iteration, dotted paths with MongoDB's array
// semantics, the BSON comparison order, order-preserving keys, numbers and validation.
//
// A document stays the bytes that came over the wire. The types are the official driver's bsoncore ones (bytes with
// methods), and documents are written with bsoncore's Append functions; what bsoncore lacks, and what must not allocate
// per field, is here.
//
// It is not a codec: nothing here turns BSON into Go structs or maps.
//
// Invariants: no function panics on arbitrary bytes; functions other than Validate may return zero values on malformed
// input, since everything that enters the process passes Validate once; no I/O, no clock, no goroutine.
//
// Any package may import it; it imports nothing of Oxbow.
package bson
