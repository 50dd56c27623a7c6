package embedded

import (
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

func (b *Backend) delete(op operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDelete(req)
	if err != nil {
		return nil, err
	}
	w, err := newWriting(&d.Generic, d.Collection, req.Targets, len(d.Deletes), d.Ordered)
	if err != nil {
		return nil, err
	}
	env, err := environment(d.Let)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for k := range d.Deletes {
		one, err := compileDelete(&d.Deletes[k], env, d.HasTxnNumber)
		if err != nil {
			if !w.refuse(k, err) {
				break
			}
			continue
		}
		w.add(k, engine.Write{Delete: one})
	}
	reply, err := w.run(b, op)
	if err != nil {
		return nil, err
	}
	w.note(b, usageDelete, start)
	return writeReply(reply, false), nil
}

func compileDelete(d *statement.DeleteOne, env query.Env, retryable bool) (*engine.DeleteStatement, error) {
	multi := d.Limit == 0
	if multi && retryable {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	q, err := compileQuery(queryParts{filter: d.Filter, hint: d.Hint}, env)
	if err != nil {
		return nil, err
	}
	return &engine.DeleteStatement{Query: q, Multi: multi}, nil
}
