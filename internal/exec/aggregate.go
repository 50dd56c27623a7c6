package exec

import (
	"context"
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/query"
)

// Aggregate returns an aggregation's results as one stream.
func (e *Executor) Aggregate(p *plan.Aggregate) query.Documents {
	if p.Whole != nil {
		return &targetStream{exec: e, target: p.Target, command: *p.Whole}
	}
	return p.Rest.Run(e.Find(p.Find))
}

// Resume returns the rest of a backend's open cursor as a stream.
func (e *Executor) Resume(t plan.Target, id, batchSize int64) query.Documents {
	return &targetStream{exec: e, target: t, opened: true, id: id, batchSize: batchSize}
}

// Command runs a command whose reply has a cursor and that is not one of a collection, such as listCollections, and returns its
// documents as a stream.
func (e *Executor) Command(ctx context.Context, name, database string, body bson.Document) (query.Documents, error) {
	reply, err := e.Run(ctx, name, &backend.Request{Body: body})
	if err != nil {
		return nil, err
	}
	c, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil, err
	}
	collection := strings.TrimPrefix(c.Namespace, database+".")
	t := plan.Target{Backend: name, Namespace: backend.Namespace{Database: database, Collection: collection}}
	return &targetStream{exec: e, target: t, opened: true, id: c.ID, batch: bson.Elements(c.Batch)}, nil
}
