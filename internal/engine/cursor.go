package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// Cursor is a stream of whole documents on a snapshot: writes after its opening don't show, until the snapshot is older than
// Options.SnapshotAge and the cursor idle; then it goes on from its last key on a new one and gives no document twice. A cursor
// is used by one goroutine at a time.
type Cursor struct {
	t       *Table
	pinned  bool
	tracked bool // among the store's readers
	stopped atomic.Pointer[mongoerr.Error]

	mu   sync.Mutex // between Next and what lets the snapshot go: see reader
	x    *execution // nil once there is nothing more to read
	busy bool       // Next was called since the last age
	err  error      // what Next gives from now on

	buf    []byte          // the document given last
	held   memory.Account  // of buf, and of the block that the scan stands in
	work   memory.Account  // of ready
	ready  []bson.Document // sorted in memory, or found by _id
	one    [1]bson.Document
	sorted bool
	skip   int64
	left   int64 // documents still to give; -1: no limit
	keys   int64
	docs   int64
}

// Find opens a cursor. The error is BadValue for a hint that names no index.
func (t *Table) Find(ctx context.Context, q Query) (*Cursor, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	if id, only, ok := q.fixedID(); ok && only && q.Natural == 0 {
		return t.findOne(id)
	}
	return t.open(&q)
}

// open opens a cursor that runs a plan.
func (t *Table) open(q *Query) (*Cursor, error) {
	if err := t.db.begin(); err != nil {
		return nil, err
	}
	defer t.db.end()
	c := &Cursor{
		t: t, pinned: q.pinned, tracked: true, skip: q.Skip, left: -1,
		held: t.db.options.Memory.Account(memory.Cursors), work: t.db.options.Memory.Account(memory.Queries),
	}
	if q.Limit > 0 {
		c.left = q.Limit
	}
	var err error
	if c.x, err = t.start(q, &c.stopped); err != nil {
		return nil, err
	}
	t.db.track(c)
	if err := t.gone(); err != nil {
		return nil, firstError(err, c.Close())
	}
	return c, nil
}

// Next returns the next document, good until the next call, or nil at the end.
func (c *Cursor) Next(ctx context.Context) (bson.Document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
	if c.err != nil {
		return nil, c.err
	}
	doc, err := c.next(ctx)
	if err != nil {
		c.fail(err)
	}
	return doc, err
}

func (c *Cursor) next(ctx context.Context) (bson.Document, error) {
	for c.left != 0 {
		doc, err := c.step(ctx)
		if doc == nil || err != nil {
			return nil, err
		}
		if c.skip > 0 {
			c.skip--
			continue
		}
		if c.left > 0 {
			c.left--
		}
		return doc, nil
	}
	return nil, c.finish()
}

// step returns the next document before skip and limit.
func (c *Cursor) step(ctx context.Context) (bson.Document, error) {
	if !c.sorted && c.x != nil && c.x.plan.sort != nil {
		if err := c.sort(ctx); err != nil {
			return nil, err
		}
	}
	if c.sorted {
		return c.nextReady(), nil
	}
	if c.x == nil {
		return nil, nil
	}
	if c.x.snapshot == nil {
		if err := c.x.resume(); err != nil {
			return nil, err
		}
	}
	doc, err := c.x.next(ctx)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, c.finish()
	}
	if more := len(doc) - cap(c.buf); more > 0 {
		if err := c.held.Grow(2 * int64(more)); err != nil {
			return nil, err
		}
	}
	c.buf = append(c.buf[:0], doc...)
	// A drop shows through snapshots: what was read since may be less than what was there.
	return c.buf, c.t.gone()
}

// nextReady takes the next of the documents that are there already, nil at their end. Each is good until the next call only, so its memory
// counts as free by then.
func (c *Cursor) nextReady() bson.Document {
	if len(c.ready) == 0 {
		c.work.Close()
		return nil
	}
	doc := c.ready[0]
	c.ready[0] = nil
	c.ready = c.ready[1:]
	c.work.Try(-int64(len(doc)))
	return doc
}

// sort reads all documents and puts them in order.
func (c *Cursor) sort(ctx context.Context) error {
	s := query.NewSorter(c.x.plan.sort, int(min(c.x.plan.keep(), 1<<31)), maxSortBytes, &c.work)
	for {
		doc, err := c.x.next(ctx)
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		if err := s.Add(doc); err != nil {
			return err
		}
	}
	if err := c.t.gone(); err != nil {
		return err
	}
	c.ready, c.sorted = s.Sorted(), true
	return c.finish()
}

// finish lets go of what is read from. What has been sorted stays.
func (c *Cursor) finish() error {
	if c.x == nil {
		return nil
	}
	c.keys, c.docs = c.x.keys, c.x.documents
	err := errors.Join(c.t.gone(), c.x.close())
	c.x = nil
	return err
}

// fail ends the cursor with an error.
func (c *Cursor) fail(err error) {
	if c.x != nil {
		c.keys, c.docs = c.x.keys, c.x.documents
		err = firstError(err, c.x.close())
		c.x = nil
	}
	c.ready, c.buf, c.err = nil, nil, err
	c.closeAccounts()
}

func (c *Cursor) closeAccounts() {
	c.held.Close()
	c.work.Close()
}

// firstError keeps the error that came first as it is.
func firstError(err, second error) error {
	if err == nil {
		return second
	}
	return err
}

// Close releases the snapshot.
func (c *Cursor) Close() error {
	if c.tracked {
		c.t.db.untrack(c)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = mongoerr.New(mongoerr.CursorKilled, "cursor was closed")
	}
	c.ready, c.buf = nil, nil
	c.closeAccounts()
	if c.x == nil {
		return nil
	}
	c.keys, c.docs = c.x.keys, c.x.documents
	err := c.x.close()
	c.x = nil
	return err
}

// Examined reports the index keys and documents read so far.
func (c *Cursor) Examined() (keys, documents int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.x != nil {
		return c.x.keys, c.x.documents
	}
	return c.keys, c.docs
}

// table implements reader.
func (c *Cursor) table() *Table { return c.t }

// release implements reader: a Next that runs stops at its next look at the context.
func (c *Cursor) release(err error) {
	c.stopped.Store(mongoerr.From(err))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err)
}

// age implements reader. A cursor that is used meanwhile keeps its snapshot.
func (c *Cursor) age() (more bool) {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	idle := !c.busy
	c.busy = false
	if c.pinned || c.x == nil || !c.x.old(c.t.db.options.SnapshotAge) {
		return false
	}
	var err error
	if idle {
		var done bool
		done, err = c.x.pause()
		more = !done
	} else {
		err = c.x.abandon()
	}
	if err != nil {
		c.fail(err)
		return false
	}
	return more
}
