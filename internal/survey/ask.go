package survey

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// readTime bounds each question that reads documents, on the server too.
const readTime = 2 * time.Second

// reader asks one server, or where members can't be asked the deployment, of which it prefers secondaries.
type reader struct {
	backend.Backend
	host string
}

// ask sends a command and returns its reply. It is a read, which may be answered by a secondary.
func (r reader) ask(ctx context.Context, database string, elements func(dst []byte) []byte) (bson.Document, error) {
	return backend.Ask(ctx, r, backend.Command(database, func(dst []byte) []byte {
		dst = elements(dst)
		return bsoncore.BuildDocumentElement(dst, "$readPreference", bsoncore.AppendStringElement(nil, "mode", "secondaryPreferred"))
	}))
}

// simple asks with a command that is a name and a 1.
func (r reader) simple(ctx context.Context, database, command string) (bson.Document, error) {
	return r.ask(ctx, database, func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, command, 1) })
}

// documents asks with a command that answers with a cursor, and returns what its batches hold, most at the most.
func (r reader) documents(ctx context.Context, database, collection string, most int, elements func(dst []byte) []byte) ([]bson.Document, error) {
	reply, err := r.ask(ctx, database, elements)
	var all []bson.Document
	for {
		if err != nil {
			return all, err
		}
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			return all, err
		}
		it := bson.Elements(c.Batch)
		for it.Next() {
			if doc, ok := it.Value().DocumentOK(); ok && len(all) < most {
				all = append(all, doc)
			}
		}
		if c.ID == 0 {
			return all, nil
		}
		if len(all) >= most {
			r.kill(ctx, database, collection, c.ID)
			return all, nil
		}
		reply, err = backend.Ask(ctx, r, backend.Command(database, func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "getMore", c.ID)
			return bsoncore.AppendStringElement(dst, "collection", collectionOf(c.Namespace(), database, collection))
		}))
		if err != nil {
			return all, fmt.Errorf("read on: %w", err)
		}
	}
}

func (r reader) kill(ctx context.Context, database, collection string, id int64) {
	// One that stays is closed by its server after ten minutes.
	r.Run(ctx, &backend.Request{Body: backend.Command(database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "killCursors", collection)
		return bsoncore.AppendArrayElement(dst, "cursors", bsoncore.NewArrayBuilder().AppendInt64(id).Build())
	})})
}

// collectionOf is the collection of a cursor's namespace, which differs from a command's own for lists.
func collectionOf(namespace, database, otherwise string) string {
	if prefix := database + "."; len(namespace) > len(prefix) && namespace[:len(prefix)] == prefix {
		return namespace[len(prefix):]
	}
	return otherwise
}

// find asks for some documents of a collection, in the order of one field, which an index has, or in none.
func (r reader) find(ctx context.Context, database, collection string, filter bson.Document, by string, direction int32, limit int) ([]bson.Document, error) {
	return r.documents(ctx, database, collection, limit, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "find", collection)
		if filter != nil {
			dst = bsoncore.AppendDocumentElement(dst, "filter", filter)
		}
		if by != "" {
			dst = bsoncore.BuildDocumentElement(dst, "sort", bsoncore.AppendInt32Element(nil, by, direction))
		}
		dst = bsoncore.AppendInt64Element(dst, "limit", int64(limit))
		dst = bsoncore.AppendBooleanElement(dst, "singleBatch", true)
		dst = bsoncore.AppendInt64Element(dst, "batchSize", int64(limit))
		return bsoncore.AppendInt64Element(dst, "maxTimeMS", readTime.Milliseconds())
	})
}

// sample asks for random documents.
func (r reader) sample(ctx context.Context, database, collection string, size int) ([]bson.Document, error) {
	stage := bsoncore.BuildDocument(nil, bsoncore.BuildDocumentElement(nil, "$sample", bsoncore.AppendInt64Element(nil, "size", int64(size))))
	return r.aggregate(ctx, database, collection, stage, size)
}

// aggregate asks for what one stage gives.
func (r reader) aggregate(ctx context.Context, database, collection string, stage bson.Document, most int) ([]bson.Document, error) {
	return r.documents(ctx, database, collection, most, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "aggregate", collection)
		dst = bsoncore.AppendArrayElement(dst, "pipeline", bsoncore.NewArrayBuilder().AppendDocument(stage).Build())
		dst = bsoncore.BuildDocumentElement(dst, "cursor", bsoncore.AppendInt32Element(nil, "batchSize", int32(most)))
		return bsoncore.AppendInt64Element(dst, "maxTimeMS", readTime.Milliseconds())
	})
}

// at returns the value under a path of fields.
func at(doc bson.Document, path ...string) (bson.Value, bool) {
	for _, name := range path[:len(path)-1] {
		v, _ := bson.Get(doc, name)
		var ok bool
		if doc, ok = v.DocumentOK(); !ok {
			return bson.Value{}, false
		}
	}
	return bson.Get(doc, path[len(path)-1])
}

// figure reads a number under a path.
func figure(doc bson.Document, path ...string) Figure {
	v, ok := at(doc, path...)
	if !ok {
		return Figure{}
	}
	if n, ok := v.AsInt64OK(); ok {
		return Known(n)
	}
	if f, ok := v.AsFloat64OK(); ok {
		return Known(int64(f))
	}
	return Figure{}
}

func text(doc bson.Document, path ...string) string {
	v, _ := at(doc, path...)
	s, _ := v.StringValueOK()
	return s
}
