package exec

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Slice returns documents in memory as a stream.
func Slice(docs []bson.Document) query.Documents { return &slice{docs} }

type slice struct{ rest []bson.Document }

func (s *slice) Next(context.Context) (bson.Document, error) {
	if len(s.rest) == 0 {
		return nil, nil
	}
	doc := s.rest[0]
	s.rest = s.rest[1:]
	return doc, nil
}

func (s *slice) Close() error { return nil }
