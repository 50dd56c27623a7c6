package embedded

import (
	"context"

	"oxbow/internal/bson"
)

// noDocuments is a stream of nothing: what a missing collection holds.
type noDocuments struct{}

func (noDocuments) Next(context.Context) (bson.Document, error) { return nil, nil }
func (noDocuments) Close() error                                { return nil }

// listed is a stream of documents that are there already: the results of listCollections and listIndexes.
type listed struct{ rest []bson.Document }

func (l *listed) Next(context.Context) (bson.Document, error) {
	if len(l.rest) == 0 {
		return nil, nil
	}
	doc := l.rest[0]
	l.rest = l.rest[1:]
	return doc, nil
}

func (l *listed) Close() error { return nil }
