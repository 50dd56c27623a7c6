package embedded

import (
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/statement"
)

func (b *Backend) count(op operation, req *backend.Request) (bson.Document, error) {
	c, err := statement.ParseCount(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&c.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	q, err := compileCount(c)
	if err != nil {
		return nil, err
	}
	name := engine.Name{Database: c.Database, Collection: c.Collection}
	var n int64
	if table, exists := b.db.Table(name); exists {
		defer b.usage.note(name, usageCommand, time.Now())
		if n, err = table.Count(op, q); err != nil {
			return nil, err
		}
	}
	return newReply(func(dst []byte) []byte { return appendNumber(dst, "n", n) }), nil
}

func compileCount(c *statement.Count) (engine.Query, error) {
	env, err := environment(nil)
	if err != nil {
		return engine.Query{}, err
	}
	q, err := compileQuery(queryParts{filter: c.Query, hint: c.Hint}, env)
	q.Skip, q.Limit = c.Skip, c.Limit
	return q, err
}
