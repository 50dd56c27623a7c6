package embedded

import (
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
	w, err := newWriting(&d.Generic, d.Collection, req, len(d.Deletes), d.Ordered)
	if err != nil {
		return nil, err
	}
	env, err := environment(d.Let)
	if err != nil {
		return nil, err
	}
	return w.answer(b, op, usageDelete, len(d.Deletes), func(i int) (engine.Write, error) {
		one, err := compileDelete(&d.Deletes[i], env, d.HasTxnNumber)
		return engine.Write{Delete: one}, err
	})
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
