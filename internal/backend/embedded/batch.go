package embedded

import (
	"context"
	"math"
	"slices"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/memory"

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
func (b *Backend) firstBatch(ctx context.Context, c *cursor, size int64, single bool, account *memory.Account) (bson.Document, error) {
	kept := false
	defer func() { // also of a panic, which goes on
		if !kept {
			c.close()
		}
	}()
	if size < 0 {
		size = firstBatchSize
	}
	out := batch{account: account, size: size, whole: single}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 1024))
	dst, err := c.appendBatch(ctx, dst, "firstBatch", &out)
	if err != nil {
		return nil, err
	}
	if c.ended || single {
		return closeCursorReply(dst, at, 0, c.namespace), nil
	}
	c.spend(ctx)
	id, err := b.cursors.add(c, time.Now())
	if err != nil {
		return nil, err
	}
	kept = true
	return closeCursorReply(dst, at, id, c.namespace), nil
}

// nextBatch answers getMore on a cursor that was taken; it gives the cursor back or closes it.
func (b *Backend) nextBatch(ctx context.Context, c *cursor, size int64, account *memory.Account) (bson.Document, error) {
	kept := false
	defer func() { // also of a panic, which goes on
		if !kept {
			b.cursors.forget(c)
			c.close()
		}
	}()
	if size == 0 {
		size = math.MaxInt64
	}
	out := batch{account: account, size: size}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, 1024))
	dst, err := c.appendBatch(ctx, dst, "nextBatch", &out)
	if err != nil {
		return nil, err
	}
	if c.ended {
		return closeCursorReply(dst, at, 0, c.namespace), nil
	}
	c.spend(ctx)
	if kept = b.cursors.giveBack(c, time.Now()); !kept {
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

// firstBatchHead begins the reply of a find, as far as its documents: the lengths come when it is closed.
const firstBatchHead = "\x00\x00\x00\x00\x03cursor\x00\x00\x00\x00\x00\x04firstBatch\x00\x00\x00\x00\x00"

// closeFirstBatch ends the reply that firstBatchHead began and its documents.
func closeFirstBatch(dst []byte, id int64, namespace string) bson.Document {
	dst, _ = bsoncore.AppendArrayEnd(dst, int32(len(firstBatchHead)-4))
	return closeCursorReply(dst, 0, id, namespace)
}

// cursorOffset is where the cursor document begins, behind the reply's length and the element's type and key.
const cursorOffset = int32(4 + 1 + len("cursor") + 1)

// batch says how much one reply may hold.
type batch struct {
	account *memory.Account // of the reply
	size    int64           // documents
	whole   bool            // it can't end early, since no other follows
}

// room makes room in dst for a document of n bytes and the left ones that may follow. It reports false where there is no memory for it.
func (b *batch) room(dst []byte, n int, left int64) ([]byte, bool) {
	if cap(dst)-len(dst) >= n {
		return dst, true
	}
	want := roomFor(dst, n, left)
	if !b.account.Try(int64(want)) {
		if want = n; !b.account.Try(int64(want)) {
			return dst, false
		}
	}
	return slices.Grow(dst, want), true
}

// appendBatch begins the element "cursor" and appends its batch to a reply under construction.
func (c *cursor) appendBatch(ctx context.Context, dst []byte, name string, out *batch) ([]byte, error) {
	_, dst = bsoncore.AppendDocumentElementStart(dst, "cursor")
	array, dst := bsoncore.AppendArrayElementStart(dst, name)
	var err error
	for n := 0; int64(n) < out.size && err == nil; n++ {
		var more bool
		dst, more, err = c.appendNext(ctx, dst, n, int(array), out)
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
// end, nor if the document would make the batch too large, or larger than there is memory for; then it is held for the next one.
func (c *cursor) appendNext(ctx context.Context, dst []byte, n, start int, out *batch) ([]byte, bool, error) {
	doc, err := c.next(ctx)
	if doc == nil || err != nil {
		return dst, false, err
	}
	before := len(dst)
	dst, ok := out.room(dst, len(doc)+16, out.size-int64(n))
	if !ok && n > 0 && !out.whole {
		c.held = doc
		return dst, false, nil
	}
	if !ok {
		return dst, false, out.account.Grow(int64(len(doc)))
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

// roomFor is how much dst should grow for as many documents of this size as may follow: growing step by step would copy a large batch several
// times. It is never more than three times what is there, so that small results stay small.
func roomFor(dst []byte, one int, left int64) int {
	want := int64(one)
	if left > 1 {
		want = min(int64(one)*min(left, maxBatchBytes), int64(max(3*len(dst), 4096, one)), maxBatchBytes+int64(one))
	}
	return int(max(want, int64(one)))
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
