package engine

import (
	"context"
	"slices"

	"oxbow/internal/bson"
)

// Distinct calls yield for each distinct value at path among the query's documents, array elements one by one, in the order of
// an index where one gives them and first seen otherwise. Skip, limit and sort of the query are not used.
//
// An index that begins with the path and decides the filter is read a value at a time, its other keys skipped.
func (t *Table) Distinct(ctx context.Context, path bson.Path, q Query, yield func(bson.Value) error) (err error) {
	if err := interrupted(ctx); err != nil {
		return err
	}
	q.Sort, q.Skip, q.Limit, q.pinned, q.distinct = nil, 0, 0, true, path.String()
	c, err := t.open(&q)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, c.Close()) }()
	err = c.distinct(ctx, path, yield)
	if gone := t.gone(); gone != nil {
		err = gone
	}
	return err
}

func (c *Cursor) distinct(ctx context.Context, path bson.Path, yield func(bson.Value) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	d := distinct{path: path, yield: yield, x: c.x}
	return d.run(ctx)
}

// valueBytes is what a value costs in a set or a list beside its bytes.
const valueBytes = 48

// distinct gathers the values of one path.
type distinct struct {
	path  bson.Path
	yield func(bson.Value) error
	x     *execution
	seen  map[string]struct{}
	key   []byte
}

func (d *distinct) run(ctx context.Context) error {
	if d.skips() {
		return d.fromIndex(ctx)
	}
	d.seen = map[string]struct{}{}
	for {
		doc, err := d.x.next(ctx)
		if doc == nil || err != nil {
			return err
		}
		if err := d.fromDocument(doc); err != nil {
			return err
		}
	}
}

// skips reports whether the plan reads an index whose first field gives the values.
func (d *distinct) skips() bool {
	p := d.x.plan
	return p.filter == nil && len(p.scans) == 1 && p.scans[0].gives(d.path.String())
}

// gives reports whether the first fields of the scan's keys are the values at path of what the scan finds. Keys of arrays are
// not, since bounds leave out elements, and a path that names elements by index goes by the documents.
func (s *scan) gives(path string) bool {
	return s.keys[0].Path.String() == path && !s.whole() && !s.multikey && !s.backward && !numbered(path) &&
		len(s.checks) == 0 && (len(s.ranges) == 1 || len(s.keys) == 1)
}

// fromIndex takes one document for each value of the index's first field. Null is also the key of documents without the field, so all
// of those are looked at until one has it.
func (d *distinct) fromIndex(ctx context.Context) error {
	sc := d.x.scanners[0]
	desc := sc.scan.keys[0].Desc
	null := bson.AppendKey(nil, bson.Null, desc)
	for {
		ok, err := d.x.advance(ctx, sc)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		doc, err := d.x.document(sc, sc.id())
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		d.x.documents++
		v, ok, _ := d.path.Lookup(doc)
		head := sc.iter.Key()[sc.scan.skip:]
		head = head[:bson.KeyLen(head, desc)]
		if !ok && slices.Equal(head, null) {
			continue
		}
		if err := d.yield(v); err != nil {
			return err
		}
		sc.leave(len(head))
	}
}

// leave makes the scanner go on behind all keys that share the first n bytes of the current key's fields.
func (sc *scanner) leave(n int) {
	sc.placed, sc.again = false, true
	if end := prefixEnd(sc.iter.Key()[:sc.scan.skip+n]); end != nil {
		sc.last = end
	} else {
		sc.current = len(sc.scan.ranges)
	}
}

// fromDocument yields the values of a document that have not been seen.
func (d *distinct) fromDocument(doc bson.Document) error {
	var err error
	emit := func(v bson.Value) bool {
		d.key = bson.AppendKey(d.key[:0], v, false)
		if _, ok := d.seen[string(d.key)]; ok {
			return true
		}
		if err = d.x.memory.Grow(int64(len(d.key)) + valueBytes); err != nil {
			return false
		}
		d.seen[string(d.key)] = struct{}{}
		err = d.yield(v)
		return err == nil
	}
	d.path.Walk(doc, false, func(v bson.Value, ok, _ bool, _ int) bool {
		if !ok {
			return true
		}
		if v.Type != bson.TypeArray {
			return emit(v)
		}
		it := bson.Elements(v.Data)
		for it.Next() {
			if !emit(it.Value()) {
				return false
			}
		}
		return true
	})
	return err
}
