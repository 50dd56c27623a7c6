package command

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
)

// Transactions go to the one deployment that their documents lie on. The session is the client's own there, so the deployment does the rest: a statement on
// a plain collection goes as it came, the parts of one on a collection with a layout get the transaction's fields (exec.Exchange). Remembered is which
// deployment that is and whether it was told, since the client's first statement need not be the first that is sent.

// transactions remembers each session's latest transaction. Safe for concurrent use.
type transactions struct {
	mu sync.Mutex
	by map[cursor.SessionID]*exec.Transaction
}

// statement returns the transaction that a statement belongs to. One that did not begin here began through another gateway.
func (t *transactions) statement(req *Request) (*exec.Transaction, error) {
	_, begins := bson.Get(req.Body, "startTransaction")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.by[*req.Session]
	switch {
	case !begins && req.ReadConcern != nil:
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Only the first command in a transaction may specify a readConcern")
	case now != nil && now.Number == req.TxnNumber && begins:
		return nil, mongoerr.New(mongoerr.ConflictingOperation, "Cannot start transaction %d on session %s: it is in progress", req.TxnNumber, req.Session)
	case now != nil && now.Number == req.TxnNumber:
		return now, nil
	case now != nil && now.Number > req.TxnNumber:
		return nil, mongoerr.New(mongoerr.TransactionTooOld, "Cannot start transaction %d on session %s because a newer transaction %d has already started.",
			req.TxnNumber, req.Session, now.Number)
	}
	if t.by == nil {
		t.by = make(map[cursor.SessionID]*exec.Transaction)
	}
	now = exec.NewTransaction(req.LSID, req.TxnNumber, begins, req.ReadConcern)
	t.by[*req.Session] = now
	return now, nil
}

// of returns a transaction, or nil if it is not known.
func (t *transactions) of(id cursor.SessionID, number int64) *exec.Transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.by[id]; now != nil && now.Number == number {
		return now
	}
	return nil
}

// forget drops those of sessions that are no more, and returns them.
func (t *transactions) forget(known func(cursor.SessionID) bool) []*exec.Transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*exec.Transaction
	maps.DeleteFunc(t.by, func(id cursor.SessionID, one *exec.Transaction) bool {
		if known(id) {
			return false
		}
		gone = append(gone, one)
		return true
	})
	return gone
}

// takeTransactions lets the commands that MongoDB's transactions take be statements of one, and registers those that end one.
func (t *Table) takeTransactions(d *Data) {
	for _, name := range []string{"find", "getMore", "killCursors", "aggregate", "distinct", "insert", "update", "delete", "findAndModify", "create", "createIndexes"} {
		t.byName[name].InTransactions = true
	}
	end := Entry{Handler: d.exchanging(d.endTransaction), AdminOnly: true, Stable: true, Writes: true, InTransactions: true, EndsTransaction: true,
		Help: "makes a transaction's writes last"}
	t.Register("commitTransaction", end)
	end.Help = "takes a transaction's writes back"
	t.Register("abortTransaction", end)
	t.forget = func() { d.Exec.Abort(d.transactions.forget(t.deps.Sessions.Known)...) }
}

// checkTransaction says whether a command may run in a transaction: MongoDB's list, less what Oxbow would run itself
// (https://www.mongodb.com/docs/manual/core/transactions-operations/).
func checkTransaction(entry *Entry, req *Request) error {
	if req.InTransaction && !entry.InTransactions {
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Cannot run '%s' in a multi-document transaction.", req.Name)
	}
	return nil
}

// enter makes a command that is a statement of a transaction one.
func (d *Data) enter(req *Request) (err error) {
	if !req.InTransaction {
		return nil
	}
	if !d.deployments.any {
		return exec.NoTransactions()
	}
	req.exchange.Transaction, err = d.transactions.statement(req)
	return err
}

// refuseInTransaction refuses what the catalog does, which is in no transaction.
func refuseInTransaction(req *Request, a view) error {
	if !req.InTransaction {
		return nil
	}
	return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "'%s' is not supported in a transaction on %s: it has a layout", req.Name, a.source.Namespace())
}

// outside is the body of a statement without what makes it one of a transaction: its parts get that when they are sent.
func outside(req *Request) bson.Document {
	if !req.InTransaction {
		return req.Body
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(req.Body)))
	it := bson.Elements(req.Body)
	for it.Next() {
		switch string(it.Key()) {
		case "txnNumber", "autocommit", "startTransaction", "readConcern":
		default:
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// endTransaction answers commitTransaction and abortTransaction.
func (d *Data) endTransaction(ctx context.Context, req *Request, reply *Reply) error {
	if req.Session == nil || !req.HasTxnNumber || !req.InTransaction {
		return mongoerr.New(mongoerr.CommandFailed, "%s must be run within a transaction", req.Name)
	}
	t := d.transactions.of(*req.Session, req.TxnNumber)
	if t == nil {
		return d.endSomewhere(ctx, req, reply)
	}
	return t.End(ctx, req.Name == "abortTransaction", func(name string) error {
		if name == "" {
			return d.endSomewhere(ctx, req, reply)
		}
		return d.forward(ctx, name, req, reply)
	})
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
		return exec.NoTransactions()
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
