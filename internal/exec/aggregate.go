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
		s := e.stream(p.Target)
		s.command = *p.Whole
		return s
	}
	return p.Rest.Run(e.Find(p.Find))
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
	collection := strings.TrimPrefix(c.Namespace(), database+".")
	t := plan.Target{Backend: name, Namespace: backend.Namespace{Database: database, Collection: collection}}
	s := e.stream(t)
	s.memory.Force(int64(len(reply)))
	s.opened, s.id, s.batch = true, c.ID, bson.Elements(c.Batch)
	return s, nil
}
