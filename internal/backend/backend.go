package backend

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
)

// Backend runs commands on one deployment.
type Backend interface {
	// Run executes one command and returns the server's reply, which the caller owns. An error means that no reply
	// came: it wraps ErrUnavailable when the command was certainly not run.
	Run(ctx context.Context, req *Request) (bson.Document, error)

	// Abilities tells what this backend can do beyond MongoDB's commands.
	Abilities() Abilities

	// Close ends running commands with an error and releases everything.
	Close() error
}

// Abilities are what a planner may use where a backend has them.
type Abilities struct {
	// OneBatch: an insert, update or delete may carry a document sequence whose statements name their own
	// namespace, so that an ordered write over several partitions is one command (see Request.Targets).
	OneBatch bool
	// Embedded: the engine's own, in this process: names of backends in errors and file-system figures make sense.
	Embedded bool
}

// Request is one command: its body and its document sequences, both raw, as OP_MSG has them.
type Request struct {
	// Body is the command document, with $db and whatever the client sent: lsid, txnNumber, readConcern, ….
	Body bson.Document
	// Sequences are OP_MSG's kind 1 sections. What stands in the body as an array (documents, updates, deletes) may stand
	// here instead, never in both.
	Sequences []Sequence
	// Targets, only with Abilities.OneBatch and only for insert, update and delete, gives the full physical namespace of each statement, in
	// order; the collection named in Body is then only a name for errors. Indexes in the reply count over all statements.
	Targets []Namespace
	// Existing, only with Abilities.OneBatch and only for insert, update and findAndModify: a collection that is missing is not made; the statement fails
	// with StaleConfig instead.
	Existing bool
	// Memory is charged for the reply by a backend that makes it, while it does; nil: it has no limit. Where there is no room a batch ends early, and
	// what can't fails with ExceededMemoryLimit. Whoever holds the reply closes it.
	Memory *memory.Account
}

// Sequence is one kind 1 section: its identifier and its documents.
type Sequence struct {
	Name      string
	Documents []bson.Document
}

// Namespace is a physical collection.
type Namespace struct {
	Database   string
	Collection string
}

// String returns "database.collection".
func (n Namespace) String() string { return n.Database + "." + n.Collection }
