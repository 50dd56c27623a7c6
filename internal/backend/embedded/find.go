package embedded

import (
	"bytes"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

func (b *Backend) find(op operation, req *backend.Request) (bson.Document, error) {
	if p, ok := parsePoint(req.Body); ok {
		if table, exists := b.db.Table(p.table); exists {
			defer b.usage.note(p.table, usageQuery, time.Now())
			return findByID(table, p.id, nil, req.Memory)
		}
	}
	f, err := statement.ParseFind(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&f.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	name := engine.Name{Database: f.Database, Collection: f.Collection}
	table, exists := b.db.Table(name)
	if exists {
		defer b.usage.note(name, usageQuery, time.Now())
		if id, ok := soleID(f); ok {
			projection, err := projectionByID(f)
			if err != nil {
				return nil, err
			}
			return findByID(table, id, projection, req.Memory)
		}
	}
	if !f.SingleBatch {
		outliveRequest(f)
	}
	q, projection, err := compileFind(f)
	if err != nil {
		return nil, err
	}
	c := &cursor{
		namespace:  namespace(name),
		in:         query.Documents(noDocuments{}),
		projection: projection,
		limit:      -1,
		patient:    f.NoCursorTimeout,
		budget:     time.Duration(f.MaxTimeMS) * time.Millisecond,
	}
	if f.Limit > 0 {
		c.limit = f.Limit
	}
	if !exists {
		c.ended = true
	} else if c.in, err = table.Find(op, q); err != nil {
		return nil, err
	}
	return b.firstBatch(op, c, f.BatchSize, f.SingleBatch, req.Memory)
}

// outliveRequest copies what a cursor goes on using after the request's bytes are gone.
func outliveRequest(f *statement.Find) {
	for _, doc := range [...]*bson.Document{&f.Filter, &f.Projection, &f.Sort, &f.Min, &f.Max, &f.Let} {
		*doc = bytes.Clone(*doc)
	}
	f.Hint.Data = bytes.Clone(f.Hint.Data)
}

// compileFind compiles everything in a find that has to be. A projection that keeps documents whole is nil.
func compileFind(f *statement.Find) (engine.Query, *query.Projection, error) {
	var q engine.Query
	env, err := environment(f.Let)
	if err != nil {
		return q, nil, err
	}
	q, err = compileQuery(queryParts{filter: f.Filter, sort: f.Sort, hint: f.Hint}, env)
	if err != nil {
		return q, nil, err
	}
	if (f.Min != nil || f.Max != nil) && f.Hint.Type == 0 {
		return q, nil, mongoerr.New(mongoerr.MinMaxNeedsHint, "When using min()/max() a hint of which index to use must be provided")
	}
	q.Min, q.Max, q.Skip, q.Limit = f.Min, f.Max, f.Skip, f.Limit
	projection, err := compileProjection(f.Projection, q.Filter, env)
	return q, projection, err
}

// queryParts are the raw arguments that select documents and order them.
type queryParts struct {
	filter bson.Document
	sort   bson.Document
	hint   bson.Value
}

func compileQuery(p queryParts, env query.Env) (engine.Query, error) {
	q := engine.Query{Hint: p.hint}
	var err error
	if len(p.filter) > emptyDocument {
		if q.Filter, err = query.ParseFilter(p.filter, env); err != nil {
			return q, err
		}
	}
	if len(p.sort) > emptyDocument {
		if q.Sort, q.Natural, err = query.ParseSort(p.sort); err != nil {
			return q, err
		}
		if q.Sort != nil && len(q.Sort.Keys) == 0 {
			q.Sort = nil
		}
	}
	return q, nil
}

// emptyDocument is the length of {}.
const emptyDocument = 5

// compileProjection returns nil for a projection that keeps documents whole.
func compileProjection(spec bson.Document, filter *query.Filter, env query.Env) (*query.Projection, error) {
	if len(spec) <= emptyDocument {
		return nil, nil
	}
	if filter == nil {
		filter = &query.Filter{}
	}
	p, err := query.ParseProjection(spec, filter, env)
	if err != nil || p.Whole() {
		return nil, err
	}
	return p, nil
}

// environment evaluates a command's let: its expressions may use no field, only constants and each other's values.
func environment(let bson.Document) (query.Env, error) {
	env := query.Env{NowMillis: time.Now().UnixMilli()}
	if len(let) <= emptyDocument {
		return env, nil
	}
	vars, err := query.EvalLet(let, env)
	if err != nil {
		return env, err
	}
	env.Let = vars
	return env, nil
}

// soleID returns the _id that a find asks for when its filter is {_id: value} and nothing else decides what it returns. A
// sort has to be valid all the same, so one goes the long way.
func soleID(f *statement.Find) (bson.Value, bool) {
	if f.Sort != nil || f.Skip != 0 || f.Hint.Type != 0 || f.Min != nil || f.Max != nil || f.BatchSize == 0 {
		return bson.Value{}, false
	}
	return onlyID(f.Filter)
}

// findByID answers a find by _id: the document goes from the store into the reply, whole without a projection.
func findByID(table *engine.Table, id bson.Value, projection *query.Projection, account *memory.Account) (bson.Document, error) {
	dst := append(make([]byte, 0, 512), firstBatchHead...)
	start := len(dst)
	dst = append(dst, "\x030\x00"...)
	var found bool
	var err error
	if projection == nil {
		dst, found, err = table.GetWithin(account, dst, id)
	} else {
		var doc []byte
		if doc, found, err = table.GetWithin(account, nil, id); found && err == nil {
			dst, err = projection.Apply(dst, doc)
		}
	}
	if err != nil {
		return nil, err
	}
	if !found {
		dst = dst[:start]
	}
	return closeFirstBatch(dst, 0, namespace(table.Name())), nil
}

func projectionByID(f *statement.Find) (*query.Projection, error) {
	if len(f.Projection) <= emptyDocument {
		return nil, nil
	}
	env, err := environment(f.Let)
	if err != nil {
		return nil, err
	}
	filter, err := query.ParseFilter(f.Filter, env)
	if err != nil {
		return nil, err
	}
	return compileProjection(f.Projection, filter, env)
}

func namespace(n engine.Name) string { return n.Database + "." + n.Collection }
