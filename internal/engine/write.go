package engine

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Write is one statement: exactly one of Insert, Update and Delete is set.
type Write struct {
	Table  Name // created when missing, by an insert or an upsert
	Insert bson.Document
	Update *UpdateStatement
	Delete *DeleteStatement
	// Statement is the statement's number in its retryable command (stmtId), with WriteOptions.Retry.
	Statement int32
}

// UpdateStatement updates the first document that Query gives, or all with Multi.
type UpdateStatement struct {
	Query  Query
	Update *query.Update
	Multi  bool
	Upsert bool
	// Return asks for the document as it was (ReturnOld) or as it became (ReturnNew), for findAndModify.
	Return Return
}

// DeleteStatement deletes the first document that Query gives, or all with Multi.
type DeleteStatement struct {
	Query  Query
	Multi  bool
	Return Return
}

// Return says which image of a document a write gives back.
type Return uint8

// The images.
const (
	ReturnNone Return = iota
	ReturnOld
	ReturnNew
)

// WriteOptions apply to one call.
type WriteOptions struct {
	Ordered bool // stop at the first error
	Sync    bool // return once it is on disk (j: true, w: majority)
	Retry   *Retry
}

// Retry makes a call safe to send again: the record of each statement is committed in the statement's own batch, and a statement whose
// record is found is not run but answered from the record.
type Retry struct {
	Session   []byte // the lsid, and whatever else tells sessions apart
	TxnNumber int64  // a lower one than the session's latest is TransactionTooOld (225)
}

// Result is the outcome of one statement.
type Result struct {
	Err      error // *mongoerr.Error; nil if it went well
	Skipped  bool  // not tried, since an ordered call had stopped before
	Retried  bool  // answered from the record of an earlier call
	Matched  int64
	Modified int64         // also the number deleted or inserted
	Upserted bson.Value    // the _id that an upsert inserted, or Type 0
	Document bson.Document // see Return
}

// Write runs statements in order and returns one Result each. What one statement does to one document is atomic with its index
// entries, counters and retry record; consecutive inserts share one batch. An error in place of results means that nothing was acknowledged: a closed
// store, a full disk (OutOfDiskSpace), a cancelled ctx before anything ran; cancelled in between, finished statements keep their results and the rest carry Interrupted.
//
// Inserts take documents as they are: _id must be present (the caller adds one) and be neither array, regex nor undefined.
func (db *DB) Write(ctx context.Context, writes []Write, o WriteOptions) ([]Result, error) {
	panic("unbuilt")
}
