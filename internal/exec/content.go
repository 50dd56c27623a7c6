package exec

import (
	"context"
	"slices"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/query"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Content serves a stream in batches: it is what a client's cursor holds. A document that did not fit into one batch
// begins the next.
type Content struct {
	stream query.Documents
	held   bson.Document // the stream's, good until its next Next, before which it is given
	done   bool
	whole  bool  // no second batch will be asked for, so none ends early for want of memory
	limit  int64 // documents of the whole stream, by which its end is known before it is met; 0: unknown
	given  int64
}

// NewContent returns a stream's content; it closes the stream.
func NewContent(stream query.Documents) *Content { return &Content{stream: stream} }

// NewLimitedContent is NewContent for a stream of at most limit documents; 0: any number.
func NewLimitedContent(stream query.Documents, limit int64) *Content {
	return &Content{stream: stream, limit: limit}
}

// Whole makes a batch that there is no memory for fail instead of ending early, and returns c.
func (c *Content) Whole(whole bool) *Content {
	c.whole = whole
	return c
}

// NextBatch appends the next documents to dst as array elements "0", "1", …: at most maxDocs (0: no limit), and at most maxBytes unless
// the first alone is larger. account, nil for none, is charged for what dst grows by; where there is no room for more than one document, the batch
// ends early. more is false when the stream is known to have ended.
func (c *Content) NextBatch(ctx context.Context, dst []byte, maxDocs, maxBytes int, account *memory.Account) (batch []byte, n int, more bool, err error) {
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
			c.held = doc
			return dst, n, true, nil
		}
		if need := len(doc) + elementOverhead; cap(dst)-len(dst) < need {
			grow := max(need, min(len(dst), maxBytes-len(dst)+start+elementOverhead))
			if !account.Try(int64(grow)) {
				if n > 0 && !c.whole {
					c.held = doc
					return dst, n, true, nil
				}
				if err := account.Grow(int64(need)); err != nil {
					return dst[:start], 0, false, err
				}
				grow = need
			}
			dst = slices.Grow(dst, grow)
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

// Partial reports whether documents are missing because their backends could not be reached, which the client allowed.
func (c *Content) Partial() bool {
	p, ok := c.stream.(*partial)
	return ok && p.Partial()
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
