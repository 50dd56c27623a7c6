package command

import (
	"context"
	"maps"
	"slices"
	"sync"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

// Transactions go to the one backend that their collections lie on, statement by statement as they come: the session is the client's own there, so the
// backend does the rest. Remembered is only which backend that is, for the statements that name no collection.

// transactions remembers on which backend each session's latest transaction is. Safe for concurrent use.
type transactions struct {
	mu sync.Mutex
	by map[cursor.SessionID]transaction
}

type transaction struct {
	number  int64
	backend string
}

// note remembers where a statement of a transaction goes. A transaction that is elsewhere already is refused.
func (t *transactions) note(id cursor.SessionID, number int64, backend string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.by[id]; ok && now.number == number && now.backend != backend {
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn,
			"a transaction over two deployments is not supported: this one is on backend %s, and the collection lies on %s", now.backend, backend)
	}
	if t.by == nil {
		t.by = make(map[cursor.SessionID]transaction)
	}
	t.by[id] = transaction{number, backend}
	return nil
}

// of returns the backend of a transaction, if it is known.
func (t *transactions) of(id cursor.SessionID, number int64) (backend string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, ok := t.by[id]
	return now.backend, ok && now.number == number
}

// forget drops those of sessions that are no more.
func (t *transactions) forget(known func(cursor.SessionID) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.by, func(id cursor.SessionID, _ transaction) bool { return !known(id) })
}

// takeTransactions lets the commands that MongoDB's transactions take be statements of one, and registers those that end one.
func (t *Table) takeTransactions(d *Data) {
	for _, name := range []string{"find", "getMore", "killCursors", "aggregate", "distinct", "insert", "update", "delete", "findAndModify", "create", "createIndexes"} {
		t.byName[name].InTransactions = true
	}
	end := Entry{Handler: d.endTransaction, AdminOnly: true, Stable: true, Writes: true, InTransactions: true, EndsTransaction: true, Help: "makes a transaction's writes last"}
	t.Register("commitTransaction", end)
	end.Help = "takes a transaction's writes back"
	t.Register("abortTransaction", end)
	t.forget = func() { d.transactions.forget(t.deps.Sessions.Known) }
}

// errTransactions is what a transaction gets where there are none. Its code is not that of a server without transactions, 20: at that one drivers say
// that the deployment has no retryable writes, and hide the reason.
func errTransactions() error {
	return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Transactions are not supported yet on the embedded engine")
}

// checkTransaction says whether a command may run in a transaction: MongoDB's list, less what Oxbow would run itself
// (https://www.mongodb.com/docs/manual/core/transactions-operations/).
func checkTransaction(entry *Entry, req *Request) error {
	if req.InTransaction && !entry.InTransactions {
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Cannot run '%s' in a multi-document transaction.", req.Name)
	}
	return nil
}

// enter notes a statement of a transaction and the backend that it goes to, once it's known that this one takes it whole.
func (d *Data) enter(req *Request, a view) error {
	if !req.InTransaction {
		return nil
	}
	if a.source.Collection != nil {
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Transactions on %s are not supported yet: it has a layout", a.source.Namespace())
	}
	if d.Exec.Abilities(a.source.Backend).Embedded {
		return errTransactions()
	}
	return d.transactions.note(*req.Session, req.TxnNumber, a.source.Backend)
}

// endTransaction answers commitTransaction and abortTransaction.
func (d *Data) endTransaction(ctx context.Context, req *Request, reply *Reply) error {
	if req.Session == nil || !req.HasTxnNumber || !req.InTransaction {
		return mongoerr.New(mongoerr.CommandFailed, "%s must be run within a transaction", req.Name)
	}
	if name, ok := d.transactions.of(*req.Session, req.TxnNumber); ok {
		return d.forward(ctx, name, req, reply)
	}
	return d.endSomewhere(ctx, req, reply)
}

// endSomewhere ends a transaction that began through another gateway, or before this one was started again: whichever server has it ends it, and the
// others say that they have none. Only when all have said so is it certain that there is none.
func (d *Data) endSomewhere(ctx context.Context, req *Request, reply *Reply) error {
	asked := false
	for _, name := range slices.Sorted(maps.Keys(d.Exec.Backends)) {
		if d.Exec.Abilities(name).Embedded {
			continue
		}
		asked = true
		if err := d.forward(ctx, name, req, reply); err != nil {
			return err
		}
		if !mongoerr.Is(backend.Check(reply.Document), mongoerr.NoSuchTransaction) {
			return nil
		}
	}
	if !asked {
		return errTransactions()
	}
	return nil
}

// transactionArguments checks what autocommit and startTransaction mean together, as MongoDB does.
func transactionArguments(body bson.Document, a *Arguments) error {
	invalid := func(format string) error { return mongoerr.New(mongoerr.InvalidOptions, "%s", format) }
	autocommit, has := bson.Get(body, "autocommit")
	start, starts := bson.Get(body, "startTransaction")
	switch {
	case starts && !start.Boolean():
		return invalid("Specifying startTransaction=false is not allowed.")
	case starts && !has:
		return invalid("'startTransaction' field requires 'autocommit' field to also be specified")
	case autocommit.Boolean():
		return invalid("Specifying autocommit=true is not allowed.")
	case !a.HasTxnNumber:
		return invalid("'autocommit' field requires a transaction number to also be specified")
	}
	a.InTransaction = true
	return nil
}
