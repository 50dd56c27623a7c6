package embedded

import (
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (b *Backend) findAndModify(op operation, req *backend.Request) (bson.Document, error) {
	f, err := statement.ParseFindAndModify(req.Body)
	if err != nil {
		return nil, err
	}
	if req.Targets != nil {
		return nil, mongoerr.New(mongoerr.BadValue, "findAndModify takes no targets")
	}
	w, err := newWriting(&f.Generic, f.Collection, req, 1, true)
	if err != nil {
		return nil, err
	}
	one, projection, err := compileFindAndModify(f)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	w.add(0, one)
	op, cancel := op.limited(time.Duration(f.MaxTimeMS) * time.Millisecond)
	defer cancel()
	results, err := b.db.Write(op, w.writes, engine.WriteOptions{Ordered: true, Sync: f.Synced(), Retry: w.retry()})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return nil, retryable(&f.Generic, op.explain(err))
	}
	w.note(b, usageUpdate, start)
	return findAndModifyReply(f, &results[0], projection, w)
}

func compileFindAndModify(f *statement.FindAndModify) (engine.Write, *query.Projection, error) {
	var w engine.Write
	env, err := environment(f.Let)
	if err != nil {
		return w, nil, err
	}
	q, err := compileQuery(queryParts{filter: f.Query, sort: f.Sort, hint: f.Hint}, env)
	if err != nil {
		return w, nil, err
	}
	projection, err := compileProjection(f.Fields, q.Filter, env)
	if err != nil {
		return w, nil, err
	}
	if f.Remove {
		w.Delete = &engine.DeleteStatement{Query: q, Return: engine.ReturnOld}
		return w, projection, nil
	}
	compiled, err := query.ParseUpdate(f.Update, query.UpdateOptions{Env: env, ArrayFilters: f.ArrayFilters, Filter: orEverything(q.Filter)})
	if err != nil {
		return w, nil, err
	}
	w.Update = &engine.UpdateStatement{Query: q, Update: compiled, Upsert: f.Upsert, Return: engine.ReturnOld}
	if f.New {
		w.Update.Return = engine.ReturnNew
	}
	return w, projection, nil
}

// findAndModifyReply is {lastErrorObject, value, ok}
// (https://www.mongodb.com/docs/manual/reference/command/findAndModify/#output).
func findAndModifyReply(f *statement.FindAndModify, r *engine.Result, projection *query.Projection, w *writing) (bson.Document, error) {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 256+len(r.Document)))
	dst = appendDocument(dst, "lastErrorObject", func(dst []byte) []byte {
		n := r.Matched
		if f.Remove {
			n = r.Modified
		}
		upserted := r.Upserted.Type != 0
		if upserted {
			n = 1
		}
		dst = bsoncore.AppendInt32Element(dst, "n", int32(n))
		if !f.Remove {
			dst = bsoncore.AppendBooleanElement(dst, "updatedExisting", n > 0 && !upserted)
		}
		if upserted {
			dst = bsoncore.AppendValueElement(dst, "upserted", r.Upserted)
		}
		return dst
	})
	dst, err := appendImage(dst, r.Document, projection)
	if err != nil {
		return nil, err
	}
	if r.Retried {
		dst = bsoncore.AppendInt32Element(dst, "retriedStmtId", w.writes[0].Statement)
	}
	if w.concern != nil {
		dst = bsoncore.AppendDocumentElement(dst, "writeConcernError", w.concern)
	}
	return closeReply(dst, at), nil
}

// appendImage appends the document as it was or as it became, projected; null if there is none.
func appendImage(dst []byte, doc bson.Document, projection *query.Projection) ([]byte, error) {
	if doc == nil {
		return bsoncore.AppendNullElement(dst, "value"), nil
	}
	if projection == nil {
		return bsoncore.AppendDocumentElement(dst, "value", doc), nil
	}
	dst = bsoncore.AppendHeader(dst, bson.TypeDocument, "value")
	return projection.Apply(dst, doc)
}
