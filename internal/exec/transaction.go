package exec

import (
	"context"
	"slices"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/sync/errgroup"
)

// Transaction is a client's transaction on the deployment that its first statement was sent to. The session is the client's own there, so the deployment
// does the rest. Safe for concurrent use: what is sent in a transaction follows one another.
type Transaction struct {
	Number int64

	lsid    bson.Document // of its session, as the client named it
	turn    chan struct{} // holds an element while a statement or the end is under way; it guards what follows
	concern bson.Document // the client's for the transaction, until a deployment was told
	backend string        // "": nothing was sent yet, or it began through another gateway
	begun   bool          // a deployment was told of it
	aborted bool
	ended   bool // by the client
}

// NewTransaction returns a transaction whose first statement has a read concern, nil for none. One that did not begin here, but through another gateway or
// before this one was started again, has begun.
func NewTransaction(lsid bson.Document, number int64, begins bool, concern bson.Document) *Transaction {
	return &Transaction{lsid: slices.Clone(lsid), Number: number, turn: make(chan struct{}, 1), begun: !begins, concern: slices.Clone(concern)}
}

// NoTransactions is the error of a transaction where there are none. Its code is not that of a server without transactions, 20: at that one drivers say
// that the deployment has no retryable writes, and hide the reason.
func NoTransactions() error {
	return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Transactions are not supported yet on the embedded engine")
}

// take waits until nothing else of the transaction is under way.
func (t *Transaction) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return backend.Ended(ctx)
	}
}

func (t *Transaction) release() { <-t.turn }

// join says whether a statement may go to a backend, whose transaction it is from then on.
func (t *Transaction) join(name string, can backend.Abilities) error {
	switch {
	case t.aborted:
		return t.gone()
	case can.Embedded:
		return NoTransactions()
	case t.backend != "" && t.backend != name:
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn,
			"a transaction over two deployments is not supported: this one is on backend %s, and a document or collection that it needs on %s", t.backend, name)
	}
	t.backend = name
	return nil
}

// gone is the error of a statement, or of the end, of a transaction that was aborted: the whole of it may be tried again.
func (t *Transaction) gone() error {
	err := mongoerr.New(mongoerr.NoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", t.Number)
	err.Labels = []string{"TransientTransactionError"}
	return err
}

// End runs the end of a transaction, once no statement is under way: with the name of its backend, or "" where that is not known. What no deployment was
// told of ends here. An aborted transaction is an error.
func (t *Transaction) End(ctx context.Context, abort bool, run func(name string) error) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.release()
	if t.aborted {
		return t.gone()
	}
	t.aborted = abort && !t.begun
	if !t.begun {
		return nil
	}
	err := run(t.backend)
	t.ended = err == nil
	return err
}

// Abort makes transactions end without effect that the client has not ended: after a statement of which parts were done and others not, or with
// their sessions. It does not depend on a command's context, which may have ended.
func (e *Executor) Abort(transactions ...*Transaction) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(DefaultWidth)
	for _, t := range transactions {
		g.Go(func() error {
			e.abort(ctx, t)
			return nil
		})
	}
	g.Wait()
}

func (e *Executor) abort(ctx context.Context, t *Transaction) {
	if t.take(ctx) != nil {
		return // a statement that hangs: its deployment ends the transaction at its own time
	}
	defer t.release()
	if t.aborted || t.ended {
		return
	}
	t.aborted = true
	if !t.begun || t.backend == "" {
		return
	}
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendInt32Element(body, "abortTransaction", 1)
	body = bsoncore.AppendDocumentElement(body, "lsid", t.lsid)
	body = bsoncore.AppendInt64Element(body, "txnNumber", t.Number)
	body = bsoncore.AppendBooleanElement(body, "autocommit", false)
	body = bsoncore.AppendStringElement(body, "$db", "admin")
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	// Whatever it answers, the transaction will not be committed: that takes a commit, which is refused from now on.
	_, _ = e.run(ctx, t.backend, &backend.Request{Body: body})
}
