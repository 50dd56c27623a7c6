package exec

import (
	"context"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/query"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Content serves a stream in batches: it is what a client's cursor holds. A document that did not fit into one batch
// begins the next.
type Content struct {
	stream query.Documents
	held   bson.Document // a copy: the stream's own memory is good until its next Next only
	done   bool
	limit  int64 // documents of the whole stream, by which its end is known before it is met; 0: unknown
	given  int64
}

// NewContent returns a stream's content; it closes the stream.
func NewContent(stream query.Documents) *Content { return &Content{stream: stream} }

// NewLimitedContent is NewContent for a stream of at most limit documents; 0: any number.
func NewLimitedContent(stream query.Documents, limit int64) *Content {
	return &Content{stream: stream, limit: limit}
}

// NextBatch appends the next documents to dst as array elements "0", "1", …: at most maxDocs (0: no limit), and at most maxBytes unless
// the first alone is larger. more is false when the stream is known to have ended.
func (c *Content) NextBatch(ctx context.Context, dst []byte, maxDocs, maxBytes int) (batch []byte, n int, more bool, err error) {
	start := len(dst)
	for maxDocs == 0 || n < maxDocs {
		doc, err := c.next(ctx)
		if err != nil {
			return dst[:start], 0, false, err
		}
		if doc == nil {
			return dst, n, false, nil
		}
		if n > 0 && len(dst)-start+len(doc)+elementOverhead > maxBytes {
			c.held = append(bson.Document(nil), doc...)
			return dst, n, true, nil
		}
		dst = appendIndexed(dst, n, doc)
		n++
		c.given++
		c.done = c.done || c.given == c.limit
	}
	return dst, n, !c.done, nil
}

// elementOverhead is the most that an array element adds to its document: type byte, key of up to 8 digits, zero byte.
const elementOverhead = 10

func (c *Content) next(ctx context.Context) (bson.Document, error) {
	if c.held != nil {
		doc := c.held
		c.held = nil
		return doc, nil
	}
	if c.done {
		return nil, nil
	}
	doc, err := c.stream.Next(ctx)
	c.done = doc == nil
	return doc, err
}

// Close closes the stream.
func (c *Content) Close() error { return c.stream.Close() }

// appendIndexed appends a document as the array element of index i.
func appendIndexed(dst []byte, i int, doc bson.Document) []byte {
	dst = append(dst, byte(bson.TypeDocument))
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, 0)
	return bsoncore.AppendDocument(dst, doc)
}
