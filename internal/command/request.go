package command

import (
	"fmt"
	"sync/atomic"
	"time"

	"oxbow/internal/auth"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
)

// Request is one command as it came, and what the table found in it. Its bytes belong to the caller of Run and are good until the handler returns.
type Request struct {
	Body      bson.Document
	Sequences []backend.Sequence
	Exhaust   bool  // the client takes a stream of replies
	Unasked   bool  // it follows from the one before in such a stream
	Conn      *Conn // never nil

	// Plan is what the command's handler planned, for the log of slow commands; nil: nothing.
	Plan fmt.Stringer

	exchange   exec.Exchange // of the data commands
	preference bson.Document // the read preference of its collection, where the client names none; nil: the primary
	retry      exec.Retry    // of a retryable write
	composed   bool          // it is made of parts here: its collection has a layout
	explained  bool          // it is the command of an explain
	failed     bool          // a statement of it failed, which ends a transaction

	Name     string // of the command, as the table spells it
	Argument bson.Value
	Database string
	Writes   bool // its command may have changed something, as the table says
	Arguments

	began, ended time.Time // each read once a command
}

// Arguments are the generic arguments: what any command may carry.
type Arguments struct {
	Session        *cursor.SessionID // nil: none
	LSID           bson.Document     // the session as the client named it; nil: none
	ClusterTime    bson.Document     // $clusterTime; nil: none
	TxnNumber      int64             // when HasTxnNumber
	HasTxnNumber   bool
	InTransaction  bool          // a statement of a transaction, or its end (autocommit: false)
	MaxTime        time.Duration // 0: no limit; already applied to the handler's context
	APIVersion     string        // "" or "1"
	APIStrict      bool
	ReadConcern    bson.Document // nil: none
	WriteConcern   bson.Document // nil: none
	ReadPreference bson.Document // nil: none
	Comment        bson.Value    // Type 0: none

	session     cursor.SessionID // what Session points to
	sessionRoom [48]byte         // for a session's bytes: a UUID and a SHA-256
}

// Sequence returns the documents of the kind 1 section of that name.
func (r *Request) Sequence(name string) ([]bson.Document, bool) {
	for i := range r.Sequences {
		if r.Sequences[i].Name == name {
			return r.Sequences[i].Documents, true
		}
	}
	return nil, false
}

// Conn is what commands know and keep about a client's connection. It runs one command at a time.
type Conn struct {
	ID          int64
	Remote      string // "address:port", or "" on a Unix socket
	Local       string
	Opened      time.Time
	Subject     string   // of the certificate that the client has shown and proven to own, as RFC 2253 writes it; "": none
	Compressors []string // agreed in hello
	User        string   // whose sessions and cursors its commands use: the SHA-256 of "name@database", "" before a login

	metadata  atomic.Pointer[bson.Document] // the client document of its first hello
	who       atomic.Pointer[auth.UserName] // who has logged in, for those who look at all connections
	login     login
	operation Operation // the record of the running command
	names     names     // in the last one

	heard    time.Time // the last hello
	messages bucket
	load     *userLoad // of the user who has logged in; nil: nobody
	loadOf   auth.UserName
}

// eachStatement calls do with every statement that a write brings, in its body's array or in its sequence.
func (r *Request) eachStatement(field string, do func(bson.Document)) {
	if docs, ok := r.Sequence(field); ok {
		for _, doc := range docs {
			do(doc)
		}
		return
	}
	v, _ := bson.Get(r.Body, field)
	a, _ := v.ArrayOK()
	it := bson.Elements(a)
	for a != nil && it.Next() {
		if doc, ok := it.Value().DocumentOK(); ok {
			do(doc)
		}
	}
}

// statements returns the number of statements that a write brings, in its body's array or in its sequence.
func (r *Request) statements(field string) int64 {
	if docs, ok := r.Sequence(field); ok {
		return int64(len(docs))
	}
	v, ok := bson.Get(r.Body, field)
	if !ok {
		return 0
	}
	a, ok := v.ArrayOK()
	if !ok {
		return 0
	}
	n := int64(0)
	it := bson.Elements(a)
	for it.Next() {
		n++
	}
	return n
}
