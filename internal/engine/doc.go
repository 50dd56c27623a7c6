// Package engine is a single-node document store on Pebble: tables of BSON documents under their _id, secondary indexes,
// a planner that picks one, and writes that are atomic, durable as asked and safe to retry.
//
// It knows no commands, no sessions of clients, no collections split behind the scenes: a table is a table. Commands are
// backend/embedded's business.
//
// Invariants: what lies on disk is fixed by docs/decisions and guarded by a format number; index entries always equal
// what the documents imply, counters what a scan would count, after any crash; no latch is held over a sync or while a
// client is waited for; errors a client could cause are *mongoerr.Error.
//
// Only backend/embedded imports it.
package engine
