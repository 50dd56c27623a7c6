package embedded

import (
	"context"
	"math"
	"slices"
	"time"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A first batch without a batchSize holds 101 documents; every batch ends at 16 MiB
// (https://www.mongodb.com/docs/manual/tutorial/iterate-a-cursor/#cursor-batches).
const (
	firstBatchSize = 101
	maxBatchBytes  = bson.MaxDocumentSize
)

// firstBatch answers a command that opens a cursor. size is batchSize, or -1 if none was given; single closes the cursor
// whatever is left.
func (b *Backend) firstBatch(ctx context.Context, c *cursor, size int64, single bool) (bson.Document, error) {
	if size < 0 {
		size = firstBatchSize
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 1024))
	dst, err := c.appendBatch(ctx, dst, "firstBatch", size)
	if err != nil || c.ended || single {
		c.in.Close()
		if err != nil {
			return nil, err
		}
		return closeCursorReply(dst, at, 0, c.namespace), nil
	}
	c.spend(ctx)
	id := b.cursors.add(c, time.Now())
	return closeCursorReply(dst, at, id, c.namespace), nil
}

// nextBatch answers getMore on a cursor that was taken; it gives the cursor back or closes it.
func (b *Backend) nextBatch(ctx context.Context, c *cursor, size int64) (bson.Document, error) {
	if size == 0 {
		size = math.MaxInt64
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 1024))
	dst, err := c.appendBatch(ctx, dst, "nextBatch", size)
	if err != nil || c.ended {
		b.cursors.forget(c)
		c.in.Close()
		if err != nil {
			return nil, err
		}
		return closeCursorReply(dst, at, 0, c.namespace), nil
	}
	c.spend(ctx)
	if !b.cursors.giveBack(c, time.Now()) {
		c.in.Close()
		return closeCursorReply(dst, at, 0, c.namespace), nil
	}
	return closeCursorReply(dst, at, c.id, c.namespace), nil
}

// closeCursorReply ends what appendBatch began, and the reply.
func closeCursorReply(dst []byte, at int32, id int64, namespace string) bson.Document {
	dst = bsoncore.AppendInt64Element(dst, "id", id)
	dst = bsoncore.AppendStringElement(dst, "ns", namespace)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at+cursorOffset)
	return closeReply(dst, at)
}

// cursorOffset is where the cursor document begins, behind the reply's length and the element's type and key.
const cursorOffset = int32(4 + 1 + len("cursor") + 1)

// appendBatch begins the element "cursor" and appends its batch of at most size documents to a reply under construction.
func (c *cursor) appendBatch(ctx context.Context, dst []byte, name string, size int64) ([]byte, error) {
	_, dst = bsoncore.AppendDocumentElementStart(dst, "cursor")
	array, dst := bsoncore.AppendArrayElementStart(dst, name)
	var err error
	for n := 0; int64(n) < size && err == nil; n++ {
		var more bool
		dst, more, err = c.appendNext(ctx, dst, n, size, int(array))
		if !more {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if c.limit == 0 {
		c.ended = true
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, array)
	return dst, nil
}

// appendNext appends the next document as the n-th element of the batch that begins at start, and reports whether it did: not at the
// end, nor if the document would make the batch too large; then it is held for the next one. The first always fits.
func (c *cursor) appendNext(ctx context.Context, dst []byte, n int, size int64, start int) ([]byte, bool, error) {
	doc, err := c.next(ctx)
	if doc == nil || err != nil {
		return dst, false, err
	}
	before := len(dst)
	if cap(dst)-before < len(doc)+16 {
		dst = roomFor(dst, len(doc)+16, size-int64(n))
	}
	dst = appendIndexed(dst, bson.TypeDocument, n)
	if c.projection == nil {
		dst = append(dst, doc...)
	} else if dst, err = c.projection.Apply(dst, doc); err != nil {
		return dst, false, err
	}
	if n > 0 && len(dst)-start > maxBatchBytes {
		c.held = doc
		return dst[:before], false, nil
	}
	if c.limit > 0 {
		c.limit--
	}
	return dst, true, nil
}

// next returns the held document or the next one, nil at the end or at the limit.
func (c *cursor) next(ctx context.Context) (bson.Document, error) {
	if c.held != nil {
		doc := c.held
		c.held = nil
		return doc, nil
	}
	if c.ended || c.limit == 0 {
		return nil, nil
	}
	doc, err := c.in.Next(ctx)
	if doc == nil && err == nil {
		c.ended = true
	}
	return doc, err
}

// roomFor grows dst at once for as many documents of this size as may follow: growing step by step would copy a large batch several
// times. It never reserves more than four times what is there, so that small results stay small.
func roomFor(dst []byte, one int, left int64) []byte {
	want := int64(one)
	if left > 1 {
		want = min(int64(one)*min(left, maxBatchBytes), int64(max(3*len(dst), 4096, one)), maxBatchBytes+int64(one))
	}
	return slices.Grow(dst, int(max(want, int64(one))))
}

// spend keeps for the next batch what the deadline of the first left over.
func (c *cursor) spend(ctx context.Context) {
	if c.budget <= 0 {
		return
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.budget = max(time.Until(deadline), time.Nanosecond)
	}
}
