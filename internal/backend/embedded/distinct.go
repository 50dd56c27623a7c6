package embedded

import (
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (b *Backend) distinct(op operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDistinct(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&d.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	q, err := compileDistinct(d)
	if err != nil {
		return nil, err
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 512))
	array, dst := bsoncore.AppendArrayElementStart(dst, "values")
	name := engine.Name{Database: d.Database, Collection: d.Collection}
	if table, exists := b.db.Table(name); exists {
		defer b.usage.note(name, usageCommand, time.Now())
		n := 0
		err = table.Distinct(op, bson.ParsePath(d.Key), q, func(v bson.Value) error {
			dst = appendIndexed(dst, v.Type, n)
			dst = append(dst, v.Data...)
			n++
			if size := int64(cap(dst)); size > req.Memory.Used() {
				if err := req.Memory.Set(size); err != nil {
					return err
				}
			}
			if len(dst) > maxBatchBytes {
				return mongoerr.New(mongoerr.DistinctTooBig, "distinct too big, 16mb cap")
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, array)
	return closeReply(dst, at), nil
}

func compileDistinct(d *statement.Distinct) (engine.Query, error) {
	if d.Key == "" {
		return engine.Query{}, mongoerr.New(mongoerr.BadValue, "'key' must not be an empty string")
	}
	env, err := environment(nil)
	if err != nil {
		return engine.Query{}, err
	}
	return compileQuery(queryParts{filter: d.Query, hint: d.Hint}, env)
}
