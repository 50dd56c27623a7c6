package purge

import (
	"context"
	"fmt"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// cell is a span of a key that one worker at a time empties from its lower end on; the end moves with what went, so that it is never read again.
type cell struct {
	Target int             `bson:"t"`
	Low    driver.RawValue `bson:"lo"`
	High   driver.RawValue `bson:"hi"`
	Open   bool            `bson:"o,omitempty"` // Low does not belong to it
	Closed bool            `bson:"c,omitempty"` // High belongs to it

	done   bool
	tried  int          // how often nothing went of what was read
	passed []bson.Value // _ids of documents that are not tried again
}

func raw(v bson.Value) driver.RawValue {
	return driver.RawValue{Type: driver.Type(v.Type), Value: v.Data}
}

func value(v driver.RawValue) bson.Value { return bson.Value{Type: bson.Type(v.Type), Data: v.Value} }

func newCell(target int, s span) *cell {
	return &cell{Target: target, Low: raw(s.lo), High: raw(s.hi), Open: s.open, Closed: s.closed}
}

func (c *cell) span(path string) span {
	return span{path: path, lo: value(c.Low), hi: value(c.High), open: c.Open, closed: c.Closed}
}

// from moves the lower end.
func (c *cell) from(v bson.Value, open bool) {
	c.Low, c.Open = raw(v), open
	c.done = c.span("").empty()
}

// emptier empties cells of one collection, a batch at a time.
type emptier struct {
	removal
	path   string // of the key
	access access
	size   *sizing
	whole  bool // a cell is one delete, whatever its size
	clock  func() time.Time
}

// batch takes the next documents of a cell away.
func (e *emptier) batch(ctx context.Context, c *cell, pace maintain.Pace) (tally, error) {
	// Nothing is read either while the throttle says stop.
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return tally{}, err
	}
	watch := &stopwatch{Pace: pace, clock: e.clock}
	began := e.clock()
	t, full, err := e.take(ctx, c, e.size.next(pace.Share()), watch)
	if full {
		e.size.took(e.clock().Sub(began) - watch.waited)
	}
	return t, err
}

// take takes away about size documents, and tells whether there were as many.
func (e *emptier) take(ctx context.Context, c *cell, size int, pace maintain.Pace) (tally, bool, error) {
	switch {
	case e.archive != nil:
		return e.takeRead(ctx, c, e.filterOf(c), size, pace)
	case e.whole:
		t, err := e.takeSpan(ctx, c.span(e.path), 0, pace)
		c.done = c.done || err == nil
		return t, false, err
	}
	border, found, err := e.border(ctx, c.span(e.path), size)
	if err != nil {
		return tally{}, false, err
	}
	s := c.span(e.path)
	if !found {
		t, err := e.takeRest(ctx, s, pace)
		c.done = c.done || err == nil
		return t, false, err
	}
	if bson.Compare(border, s.lo) == 0 {
		t, err := e.takeEqual(ctx, c, size, pace)
		return t, err == nil, err
	}
	s.hi, s.closed = border, false
	t, err := e.takeSpan(ctx, s, size, pace)
	if err == nil {
		c.from(border, false)
		t.Examined, t.Taken = int64(size), t.Gone
	}
	return t, err == nil, err
}

// border returns the key behind the first size keys of a span; false where there are not as many.
func (e *emptier) border(ctx context.Context, s span, size int) (bson.Value, bool, error) {
	found, err := e.collection.find(ctx, find{
		filter: e.access.keys(s), sort: ascending(e.path), projection: fieldsOnly(e.path), hint: e.access.hint(), skip: size, limit: 1,
	})
	if err != nil || len(found) == 0 {
		return bson.Value{}, false, err
	}
	v, err := e.keyOf(found[0])
	return v, err == nil, err
}

// keyOf reads a document's key.
func (e *emptier) keyOf(doc bson.Document) (bson.Value, error) {
	v, ok, array := bson.ParsePath(e.path).Lookup(doc)
	switch {
	case array:
		return v, &Refusal{Reason: fmt.Sprintf("a document has an array in %s since the index was looked at: use ids", e.path)}
	case !ok:
		return v, fmt.Errorf("a document that was found by %s has none", e.path)
	}
	return v, nil
}

// takeSpan takes away what lies in a span; size is what it holds, about, for the pace.
func (e *emptier) takeSpan(ctx context.Context, s span, size int, pace maintain.Pace) (tally, error) {
	if err := pace.Wait(ctx, size, int64(size)*e.entry); err != nil {
		return tally{}, err
	}
	n, err := e.collection.delete(ctx, e.collection.statement(and(e.filter, s.filter()), e.access.hint()))
	return tally{Gone: n, Bytes: n * e.average}, err
}

// takeRest takes away what lies in a span of fewer than a batch's keys, which are counted.
func (e *emptier) takeRest(ctx context.Context, s span, pace maintain.Pace) (tally, error) {
	keys, err := e.collection.count(ctx, e.access.keys(s), e.access.hint(), 0)
	if err != nil || keys == 0 {
		return tally{}, err
	}
	t, err := e.takeSpan(ctx, s, int(keys), pace)
	t.Examined, t.Taken = max(keys, t.Gone), t.Gone
	return t, err
}

// takeEqual takes away some of the documents that share the lowest key of a cell, which are too many for one delete.
func (e *emptier) takeEqual(ctx context.Context, c *cell, size int, pace maintain.Pace) (tally, error) {
	low := value(c.Low)
	point := span{path: e.path, lo: low, hi: low, closed: true}
	found, err := e.collection.find(ctx, find{
		filter: and(e.filter, point.filter()), projection: fieldsOnly("_id"), hint: e.access.hint(), limit: size,
	})
	if err != nil {
		return tally{}, err
	}
	if len(found) == 0 {
		c.from(low, true)
		return tally{}, nil
	}
	return e.remove(ctx, found, pace)
}

// filterOf is what goes of a cell, but for the documents that are passed over.
func (e *emptier) filterOf(c *cell) bson.Document {
	f := and(e.filter, c.span(e.path).filter())
	if len(c.passed) > 0 {
		f = and(f, without(c.passed))
	}
	return f
}

// Documents that change each time between reading and deleting are passed over after some tries, and there may be some of them in a cell.
const (
	tries     = 3
	maxPassed = 1000
)

// takeRead reads documents and takes away those, as an archive needs it.
func (e *emptier) takeRead(ctx context.Context, c *cell, filter bson.Document, size int, pace maintain.Pace) (tally, bool, error) {
	found, err := e.collection.find(ctx, find{filter: filter, sort: ascending(e.path), hint: e.access.hint(), limit: size})
	if err != nil {
		return tally{}, false, err
	}
	if len(found) == 0 {
		c.done = true
		return tally{}, false, nil
	}
	last, err := e.keyOf(found[len(found)-1])
	if err != nil {
		return tally{}, false, err
	}
	t, err := e.remove(ctx, found, pace)
	if err != nil {
		return t, false, err
	}
	// What has the same key, and what did not go, is found again.
	switch {
	case t.Skipped == 0:
		c.from(last, false)
		c.tried = 0
	case t.Gone > 0:
		c.tried = 0
	default:
		if c.tried++; c.tried >= tries {
			c.tried = 0
			c.passed = append(c.passed, idsOf(found)...)
		}
		if len(c.passed) > maxPassed {
			return t, false, &Refusal{Reason: fmt.Sprintf("more than %d documents change each time between reading and deleting", maxPassed)}
		}
	}
	return t, len(found) == size, nil
}
