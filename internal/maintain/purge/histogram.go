package purge

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// ends are the first and the last key in a span; false where there is none.
func (c *collection) ends(ctx context.Context, s span, a access) (first, last bson.Value, ok bool, err error) {
	e := emptier{removal: removal{collection: c}, path: s.path}
	for _, end := range []struct {
		sort bson.Document
		at   *bson.Value
	}{{ascending(s.path), &first}, {descending(s.path), &last}} {
		found, err := c.find(ctx, find{filter: a.keys(s), sort: end.sort, projection: fieldsOnly(s.path), hint: a.hint(), limit: 1})
		if err != nil || len(found) == 0 {
			return first, last, false, err
		}
		if *end.at, err = e.keyOf(found[0]); err != nil {
			return first, last, false, err
		}
	}
	return first, last, true, nil
}

// A sample has sampled documents for each cell. Taken from fewer than leastSampled documents it would be a scan: a $sample is taken at random where it is
// less than 5 % of more than 100 documents (https://www.mongodb.com/docs/manual/reference/operator/aggregation/sample/).
const (
	sampled      = 10
	leastSampled = 100_000
)

// sample returns the keys of some documents chosen at random; none where the collection is small, or its server knows no $sample.
func (c *collection) sample(ctx context.Context, path string, cells int) []bson.Value {
	size := sampled * cells
	if n, err := c.count(ctx, nil, bson.Value{}, countTime); err != nil || n < leastSampled || int64(size) > n/20 {
		return nil
	}
	one := bsoncore.NewDocumentBuilder().StartDocument("$sample").AppendInt32("size", int32(size)).FinishDocument().Build()
	key := bsoncore.NewDocumentBuilder().AppendDocument("$project", fieldsOnly(path)).Build()
	body := bsoncore.NewDocumentBuilder().AppendString("aggregate", c.Namespace.Collection)
	body.AppendArray("pipeline", bsoncore.NewArrayBuilder().AppendDocument(one).AppendDocument(key).Build())
	body.StartDocument("cursor").AppendInt32("batchSize", int32(size)).FinishDocument()
	reply, err := c.run(ctx, c.Backend, body)
	if err != nil {
		return nil
	}
	cursor, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil
	}
	var keys []bson.Value
	for _, d := range documents(cursor.Batch) {
		if v, ok, array := bson.ParsePath(path).Lookup(d); ok && !array {
			keys = append(keys, v)
		}
	}
	return keys
}
