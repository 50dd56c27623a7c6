package engine

import (
	"context"
	"math"
)

// Count counts the documents of a query, skip and limit applied; without a filter from the counter, and from index keys alone
// where they decide the filter.
func (t *Table) Count(ctx context.Context, q Query) (int64, error) {
	if err := interrupted(ctx); err != nil {
		return 0, err
	}
	n, err := t.countAll(ctx, q)
	if err != nil {
		return 0, err
	}
	n = max(0, n-q.Skip)
	if q.Limit > 0 {
		n = min(n, q.Limit)
	}
	return n, nil
}

// countAll counts before skip and limit are applied, but no further than they need.
func (t *Table) countAll(ctx context.Context, q Query) (n int64, err error) {
	if q.counter() {
		return t.documents.Load(), t.gone()
	}
	want := int64(0)
	if q.Limit > 0 {
		want = saturatingAdd(q.Skip, q.Limit)
	}
	q.Sort, q.Skip, q.Limit, q.pinned = nil, 0, 0, true
	c, err := t.open(&q)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstError(err, c.Close()) }()
	return c.count(ctx, want)
}

// saturatingAdd adds numbers that are not negative; what is too large is the largest.
func saturatingAdd(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// counter reports whether the table's counter answers a count.
func (q *Query) counter() bool {
	return (q.Filter == nil || len(conjuncts(q.Filter.Root())) == 0) && q.Hint.Type == 0 && q.Min == nil && q.Max == nil
}

// count counts what the cursor would give, want of them at most (0: all), without reading documents where keys decide.
func (c *Cursor) count(ctx context.Context, want int64) (n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	for want == 0 || n < want {
		var more bool
		if c.x.plan.filter == nil {
			more, err = c.x.nextKey(ctx)
		} else {
			var doc []byte
			doc, err = c.x.next(ctx)
			more = doc != nil
		}
		if err != nil || !more {
			break
		}
		n++
	}
	return n, firstError(err, c.t.gone())
}

// nextKey moves on to the next document without reading it.
func (x *execution) nextKey(ctx context.Context) (bool, error) {
	for x.current < len(x.scanners) {
		sc := x.scanners[x.current]
		ok, err := x.advance(ctx, sc)
		if err != nil {
			return false, err
		}
		if !ok {
			x.current++
			continue
		}
		if x.seen == nil {
			return true, nil
		}
		if fresh, err := x.fresh(sc.id()); fresh || err != nil {
			return fresh, err
		}
	}
	return false, nil
}
