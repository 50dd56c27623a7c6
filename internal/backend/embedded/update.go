package embedded

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

func (b *Backend) update(op operation, req *backend.Request) (bson.Document, error) {
	u, err := statement.ParseUpdate(req)
	if err != nil {
		return nil, err
	}
	w, err := newWriting(&u.Generic, u.Collection, req, len(u.Updates), u.Ordered)
	if err != nil {
		return nil, err
	}
	env, err := environment(u.Let)
	if err != nil {
		return nil, err
	}
	for k := range u.Updates {
		if err := query.CheckUpdateStages(u.Updates[k].Update); err != nil {
			return nil, err
		}
	}
	return w.answer(b, op, usageUpdate, len(u.Updates), func(i int) (engine.Write, error) {
		one, err := compileUpdate(&u.Updates[i], env, u.HasTxnNumber)
		return engine.Write{Update: one}, err
	})
}

func compileUpdate(u *statement.UpdateOne, env query.Env, retryable bool) (*engine.UpdateStatement, error) {
	if u.Multi && retryable {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	q, err := compileQuery(queryParts{filter: u.Filter, hint: u.Hint}, env)
	if err != nil {
		return nil, err
	}
	if env, err = env.WithConstants(u.Constants, u.Update); err != nil {
		return nil, err
	}
	compiled, err := query.ParseUpdate(u.Update, query.UpdateOptions{
		Env:          env,
		ArrayFilters: u.ArrayFilters,
		Filter:       orEverything(q.Filter),
		Multi:        u.Multi,
	})
	if err != nil {
		return nil, err
	}
	return &engine.UpdateStatement{Query: q, Update: compiled, Multi: u.Multi, Upsert: u.Upsert}, nil
}

// orEverything returns the filter that matches everything for none.
func orEverything(f *query.Filter) *query.Filter {
	if f == nil {
		return &query.Filter{}
	}
	return f
}
