package embedded

import (
	"slices"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// writing is one write command on its way into the engine: the statements that can be tried, and the errors of those that can't.
type writing struct {
	generic *statement.Generic
	ordered bool
	targets []backend.Namespace // nil: every statement goes to table
	table   engine.Name
	// existing: a table that is missing is not made.
	existing bool
	stmtIDs  []int32 // nil: stmtId, or 0, and upwards

	writes  []engine.Write
	index   []int32 // each write's place in the command; nil while they are the same
	refused []backend.WriteError
	concern bson.Document // writeConcernError
}

// newWriting checks what all write commands share.
func newWriting(g *statement.Generic, collection string, req *backend.Request, statements int, ordered bool) (*writing, error) {
	w := &writing{
		generic:  g,
		ordered:  ordered,
		targets:  req.Targets,
		table:    engine.Name{Database: g.Database, Collection: collection},
		existing: req.Existing,
	}
	if w.targets != nil && len(w.targets) != statements {
		return nil, mongoerr.New(mongoerr.BadValue, "%d targets for %d statements", len(w.targets), statements)
	}
	var err error
	if w.concern, err = checkWriteConcern(g.WriteConcern); err != nil {
		return nil, err
	}
	if err := w.setRetry(statements); err != nil {
		return nil, err
	}
	w.writes = make([]engine.Write, 0, statements)
	return w, nil
}

// setRetry checks the fields that make a write safe to retry.
func (w *writing) setRetry(statements int) error {
	g := w.generic
	if !g.HasTxnNumber {
		return nil
	}
	if g.LSID == nil {
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified")
	}
	if g.TxnNumber < 0 {
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	}
	if g.StmtIDs == nil {
		return nil
	}
	it := bson.Elements(g.StmtIDs)
	for it.Next() {
		n, ok := it.Value().AsInt32OK()
		if !ok {
			return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'stmtIds.%s' is the wrong type '%s', expected type 'int'",
				it.Key(), bson.TypeName(it.Value().Type))
		}
		w.stmtIDs = append(w.stmtIDs, n)
	}
	if len(w.stmtIDs) != statements {
		return mongoerr.New(mongoerr.InvalidOptions, "Number of statement ids must match the number of batch entries. Got %d statement ids but %d batch entries",
			len(w.stmtIDs), statements)
	}
	return nil
}

// retry returns what makes the engine remember the write, or nil. The session is the lsid's id and, where it is there, its uid.
func (w *writing) retry() *engine.Retry {
	g := w.generic
	if !g.HasTxnNumber {
		return nil
	}
	var session []byte
	for _, key := range [...]string{"id", "uid"} {
		if v, ok := bson.Get(g.LSID, key); ok {
			if _, data, ok := v.BinaryOK(); ok {
				session = append(session, data...)
			}
		}
	}
	return &engine.Retry{Session: session, TxnNumber: g.TxnNumber}
}

// answer compiles the command's statements one by one, runs those that can be run, and returns the reply.
func (w *writing) answer(b *Backend, op operation, kind usageKind, statements int, compile func(i int) (engine.Write, error)) (bson.Document, error) {
	start := time.Now()
	for i := range statements {
		one, err := compile(i)
		if err == nil {
			w.add(i, one)
		} else if !w.refuse(i, err) {
			break
		}
	}
	reply, err := w.run(b, op)
	if err != nil {
		return nil, err
	}
	w.note(b, kind, start)
	return writeReply(reply, kind == usageUpdate), nil
}

// add takes the i-th statement of the command.
func (w *writing) add(i int, one engine.Write) {
	one.Table, one.Existing = w.table, w.existing
	if w.targets != nil {
		one.Table = engine.Name(w.targets[i])
	}
	switch {
	case w.stmtIDs != nil:
		one.Statement = w.stmtIDs[i]
	case w.generic.StmtID >= 0:
		one.Statement = w.generic.StmtID + int32(i)
	default:
		one.Statement = int32(i)
	}
	if w.index == nil && i != len(w.writes) {
		for k := range w.writes {
			w.index = append(w.index, int32(k))
		}
	}
	if w.index != nil || i != len(w.writes) {
		w.index = append(w.index, int32(i))
	}
	w.writes = append(w.writes, one)
}

// refuse notes that the i-th statement can't be tried, and reports whether those behind it are tried.
func (w *writing) refuse(i int, err error) (goOn bool) {
	w.refused = append(w.refused, backend.WriteError{Index: int32(i), Err: mongoerr.From(err)})
	return !w.ordered
}

// place is a write's index in the command.
func (w *writing) place(k int) int32 {
	if w.index == nil {
		return int32(k)
	}
	return w.index[k]
}

// run writes and returns the command's reply so far. An interruption fails the command as a whole, as MongoDB's does.
func (w *writing) run(b *Backend, op operation) (*backend.WriteReply, error) {
	op, cancel := op.limited(time.Duration(w.generic.MaxTimeMS) * time.Millisecond)
	defer cancel()
	reply := &backend.WriteReply{ConcernError: w.concern}
	if len(w.writes) > 0 {
		results, err := b.db.Write(op, w.writes, engine.WriteOptions{Ordered: w.ordered, Sync: w.generic.Synced(), Retry: w.retry()})
		if err != nil {
			return nil, retryable(w.generic, op.explain(err))
		}
		if err := w.collect(reply, results); err != nil {
			return nil, retryable(w.generic, op.explain(err))
		}
	}
	if !w.ordered || len(reply.Errors) == 0 {
		reply.Errors = append(reply.Errors, w.refused...)
	}
	slices.SortFunc(reply.Errors, func(a, b backend.WriteError) int { return int(a.Index) - int(b.Index) })
	reply.ShortenErrors()
	return reply, nil
}

// collect adds up the results.
func (w *writing) collect(reply *backend.WriteReply, results []engine.Result) error {
	for k := range results {
		r := &results[k]
		switch {
		case r.Err != nil:
			e := mongoerr.From(r.Err)
			if isInterruption(e.Code) {
				return e
			}
			reply.Errors = append(reply.Errors, backend.WriteError{Index: w.place(k), Err: e})
			continue
		case r.Skipped:
			continue
		}
		if r.Retried {
			reply.RetriedStmts = append(reply.RetriedStmts, w.writes[k].Statement)
		}
		switch {
		case w.writes[k].Update == nil:
			reply.N += r.Modified
		case r.Upserted.Type != 0:
			reply.N++
			reply.Upserted = append(reply.Upserted, backend.Upserted{Index: w.place(k), ID: r.Upserted})
		default:
			reply.N += r.Matched
			reply.Modified += r.Modified
		}
	}
	return nil
}

// note counts the command for the table of its first statement.
func (w *writing) note(b *Backend, kind usageKind, start time.Time) {
	if len(w.writes) == 0 {
		return
	}
	if _, exists := b.db.Table(w.writes[0].Table); exists {
		b.usage.note(w.writes[0].Table, kind, start)
	}
}

// isInterruption tells the errors that end a command and not only one of its statements.
func isInterruption(code mongoerr.Code) bool {
	switch code {
	case mongoerr.Interrupted, mongoerr.MaxTimeMSExpired, mongoerr.InterruptedAtShutdown, mongoerr.ShutdownInProgress:
		return true
	}
	return false
}

// retryable labels an error after which a driver may send a retryable write again: as a router does, only where the write carries a
// transaction number (https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md).
func retryable(g *statement.Generic, err error) error {
	e := mongoerr.From(err)
	if !g.HasTxnNumber || e.Code != mongoerr.InterruptedAtShutdown && e.Code != mongoerr.ShutdownInProgress {
		return err
	}
	labelled := *e
	labelled.Labels = append(slices.Clone(e.Labels), "RetryableWriteError")
	return &labelled
}

// writeReply builds the reply document of insert, update and delete.
func writeReply(r *backend.WriteReply, update bool) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 128))
	dst = r.Append(dst, update)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func newObjectID() [12]byte { return driver.NewObjectID() }
