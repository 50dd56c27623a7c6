package engine

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// interruptKeys is how many keys are looked at between two looks at the context and at the table: few, since a filter may take long over each.
const interruptKeys = 16

// maxSortBytes is the memory of one sort (https://www.mongodb.com/docs/manual/reference/limits/, Sort Operations).
const maxSortBytes = 100 << 20

// execution runs a plan on a snapshot. It is used by one goroutine at a time.
type execution struct {
	table  *Table
	plan   *plan
	filter *query.Filter // the whole filter, for after a change of snapshot

	snapshot *pebble.Snapshot
	opened   time.Time
	scanners []*scanner
	current  int // the scanner at hand, where they are read one after the other
	heap     *mergeHeap
	fetch    *fetcher
	seen     *idSet         // documents that have come up; nil where none can twice
	passing  *passing       // see pause
	memory   memory.Account // of documents that a merge stands at, and of distinct values

	keys, documents int64
	untilCheck      int64
	stopped         *atomic.Pointer[mongoerr.Error] // set from elsewhere to end it
}

// start plans q and opens what the plan reads.
func (t *Table) start(q *Query, stopped *atomic.Pointer[mongoerr.Error]) (*execution, error) {
	snapshot, v, err := t.snapshot()
	if err != nil {
		return nil, err
	}
	x := &execution{table: t, memory: t.db.options.Memory.Account(memory.Queries), snapshot: snapshot, filter: q.Filter, stopped: stopped}
	pl := t.planner(v, snapshot)
	pl.explained = q.explained
	if x.plan, err = pl.plan(q); err == nil {
		err = x.open()
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// planner returns what plans a query of the table.
func (t *Table) planner(v *version, snapshot *pebble.Snapshot) *planner {
	p := &planner{
		namespace: t.Name().String(),
		documents: appendDocumentPrefix(nil, t.id),
		indexes:   v.ready(),
		count:     t.documents.Load(),
	}
	p.probe = func(s *scan, limit int) (int, bool) { return probe(s, snapshot, limit) }
	return p
}

// probe counts the keys of a scan up to limit.
func probe(s *scan, snapshot *pebble.Snapshot, limit int) (keys int, all bool) {
	if len(s.ranges) == 0 {
		return 0, true
	}
	sc, err := newScanner(s, snapshot)
	if err != nil {
		return limit, false
	}
	defer sc.close()
	for keys < limit {
		looked, ok, err := sc.next()
		keys += looked
		if err != nil {
			return keys, false
		}
		if !ok {
			return keys, true
		}
	}
	return keys, false
}

// open opens iterators on the snapshot.
func (x *execution) open() error {
	x.opened = time.Now()
	x.untilCheck = interruptKeys
	if x.seen == nil && x.plan.several() {
		x.seen = x.newIDSet()
	}
	fetches := false
	for i := range x.plan.scans {
		s := &x.plan.scans[i]
		fetches = fetches || s.index != nil
		sc, err := newScanner(s, x.snapshot)
		if err != nil {
			return err
		}
		x.scanners = append(x.scanners, sc)
	}
	if !fetches {
		return nil
	}
	var err error
	x.fetch, err = newFetcher(appendDocumentPrefix(nil, x.table.id), x.snapshot)
	return err
}

// next returns the next document that matches, in the order of the plan's scans, good until the next call; nil at the end.
func (x *execution) next(ctx context.Context) (bson.Document, error) {
	if x.plan.merge != nil {
		return x.merged(ctx)
	}
	for x.current < len(x.scanners) {
		doc, _, err := x.from(ctx, x.scanners[x.current], true)
		if doc != nil || err != nil {
			return doc, err
		}
		x.current++
	}
	return nil, nil
}

// advance moves a scanner to its next key and looks at the context now and then.
func (x *execution) advance(ctx context.Context, sc *scanner) (bool, error) {
	for {
		looked, ok, err := sc.next()
		if sc.scan.index != nil {
			x.keys += int64(looked)
		}
		if x.untilCheck -= int64(looked); x.untilCheck <= 0 {
			x.untilCheck = interruptKeys
			if err := x.interrupted(ctx); err != nil {
				return false, err
			}
		}
		if err == errYield {
			continue
		}
		return ok, err
	}
}

func (x *execution) interrupted(ctx context.Context) error {
	if err := x.stopped.Load(); err != nil {
		return err
	}
	return interrupted(ctx)
}

// from returns the next matching document of one scanner with the key of its _id; once: leaving out those that have come up before.
func (x *execution) from(ctx context.Context, sc *scanner, once bool) (bson.Document, []byte, error) {
	for {
		ok, err := x.advance(ctx, sc)
		if !ok || err != nil {
			return nil, nil, err
		}
		id := sc.id()
		if once && x.seen != nil {
			fresh, err := x.fresh(id)
			if err != nil {
				return nil, nil, err
			}
			if !fresh {
				continue
			}
		}
		doc, err := x.document(sc, id)
		if err != nil {
			return nil, nil, err
		}
		if doc == nil {
			continue
		}
		x.documents++
		if x.plan.filter != nil {
			match, err := x.plan.filter.Match(doc)
			if err != nil {
				return nil, nil, err
			}
			if !match {
				continue
			}
		}
		return doc, id, nil
	}
}

// maxSeenBytes bounds what a query remembers of the documents that have come up.
const maxSeenBytes = 2 << 30

func (x *execution) fresh(id []byte) (bool, error) {
	if len(x.seen.bytes) > maxSeenBytes {
		return false, mongoerr.New(mongoerr.ExceededMemoryLimit, "the _ids of a query over several index keys a document need more than %d bytes", maxSeenBytes)
	}
	return x.seen.add(id)
}

func (x *execution) document(sc *scanner, id []byte) (bson.Document, error) {
	if sc.scan.index == nil {
		return sc.iter.ValueAndErr()
	}
	return x.fetch.document(id)
}

// merged returns the least document, by the sort order, that stands next in any scanner.
func (x *execution) merged(ctx context.Context) (bson.Document, error) {
	if x.heap == nil {
		h := &mergeHeap{}
		for _, sc := range x.scanners {
			if err := x.refill(ctx, h, &mergeItem{scanner: sc}); err != nil {
				return nil, err
			}
		}
		heap.Init(h)
		x.heap = h
	}
	for x.heap.Len() > 0 {
		top := x.heap.items[0]
		doc := slices.Clone(top.doc)
		fresh, err := x.fresh(top.id)
		if err != nil {
			return nil, err
		}
		heap.Pop(x.heap)
		if err := x.refill(ctx, x.heap, top); err != nil {
			return nil, err
		}
		if fresh {
			return doc, nil
		}
	}
	return nil, nil
}

// refill puts the next document of an item's scanner into the heap.
func (x *execution) refill(ctx context.Context, h *mergeHeap, item *mergeItem) error {
	doc, id, err := x.from(ctx, item.scanner, false)
	if doc == nil || err != nil {
		return err
	}
	if more := len(doc) - cap(item.doc); more > 0 {
		if err := x.memory.Grow(int64(more)); err != nil {
			return err
		}
	}
	item.doc = append(item.doc[:0], doc...)
	item.id = append(item.id[:0], id...)
	if item.key, err = x.plan.merge.AppendKey(item.key[:0], doc); err != nil {
		return err
	}
	heap.Push(h, item)
	return nil
}

// mergeItem is the document that a scanner stands at.
type mergeItem struct {
	scanner *scanner
	key     []byte // of the sort
	id      []byte
	doc     bson.Document
}

// mergeHeap orders the scanners of a merge by their documents.
type mergeHeap struct{ items []*mergeItem }

func (h *mergeHeap) Len() int { return len(h.items) }
func (h *mergeHeap) Less(a, b int) bool {
	c := bytes.Compare(h.items[a].key, h.items[b].key)
	return c < 0 || c == 0 && bytes.Compare(h.items[a].id, h.items[b].id) < 0
}
func (h *mergeHeap) Swap(a, b int) { h.items[a], h.items[b] = h.items[b], h.items[a] }
func (h *mergeHeap) Push(v any)    { h.items = append(h.items, v.(*mergeItem)) }
func (h *mergeHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

// close lets go of everything.
func (x *execution) close() error {
	x.memory.Close()
	x.seen.close()
	x.seen = nil
	return errors.Join(x.abandon(), x.letGo())
}

// letGo lets go of iterators and snapshot.
func (x *execution) letGo() error {
	var errs []error
	for _, sc := range x.scanners {
		errs = append(errs, sc.close())
	}
	if x.fetch != nil {
		errs = append(errs, x.fetch.close())
		x.fetch = nil
	}
	if x.snapshot != nil {
		errs = append(errs, x.snapshot.Close())
		x.snapshot = nil
	}
	return errors.Join(errs...)
}
