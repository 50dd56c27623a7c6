package engine

import (
	"bytes"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// hint resolves a query's hint: natural is not 0 for a scan of all documents, s is the index named.
func (p *planner) hint(q *Query) (natural int, s *source, err error) {
	if q.Natural != 0 {
		return q.Natural, nil, nil
	}
	switch h := q.Hint; h.Type {
	case 0:
		return 0, nil, nil
	case bson.TypeString:
		if s := p.named(h.StringValue()); s != nil {
			return 0, s, nil
		}
	case bson.TypeDocument:
		key, v, ok := bson.First(h.Data)
		if !ok {
			return 0, nil, nil
		}
		if key == "$natural" {
			n, isNumber := v.AsFloat64OK()
			if !isNumber || n != 1 && n != -1 {
				return 0, nil, mongoerr.New(mongoerr.BadValue, "$natural hint must be 1 or -1")
			}
			return int(n), nil, nil
		}
		if s := p.patterned(h.Data); s != nil {
			return 0, s, nil
		}
	default:
		return 0, nil, mongoerr.New(mongoerr.FailedToParse, "hint must be either a string or nested object")
	}
	return 0, nil, mongoerr.New(mongoerr.BadValue,
		"error processing query: ns=%s planner returned error :: caused by :: hint provided does not correspond to an existing index", p.namespace)
}

// named returns the index with a name.
func (p *planner) named(name string) *source {
	if name == idIndexName {
		return p.idSource()
	}
	for _, ix := range p.indexes {
		if ix.Name == name && !ix.Hidden {
			s := sourceOf(ix)
			return &s
		}
	}
	return nil
}

func (p *planner) idSource() *source {
	return &source{name: idIndexName, keys: idKeys, prefix: p.documents, unique: true}
}

// patterned returns the first index with a key pattern.
func (p *planner) patterned(pattern []byte) *source {
	if sameKeys(idKeys, pattern) {
		return p.idSource()
	}
	for _, ix := range p.indexes {
		if !ix.Hidden && sameKeys(ix.Keys, pattern) {
			s := sourceOf(ix)
			return &s
		}
	}
	return nil
}

// sameKeys compares an index's keys with a pattern.
func sameKeys(keys []IndexKey, pattern []byte) bool {
	n := 0
	it := bson.Elements(pattern)
	for it.Next() {
		if n == len(keys) || keys[n].Path.String() != string(it.Key()) {
			return false
		}
		d, ok := it.Value().AsFloat64OK()
		if !ok || d < 0 != keys[n].Desc {
			return false
		}
		n++
	}
	return n == len(keys)
}

// planBetween answers a query with min or max: the keys of the hinted index from min on and below max, in the index's own order
// (https://www.mongodb.com/docs/manual/reference/method/cursor.min/).
func (p *planner) planBetween(out *plan, q *Query, conds []conjunct) error {
	_, s, err := p.hint(q)
	if err != nil {
		return err
	}
	if s == nil {
		return mongoerr.New(mongoerr.MinMaxNeedsHint, "When using min()/max() a hint of which index to use must be provided")
	}
	r := span{lo: slices.Clone(s.prefix), hi: prefixEnd(s.prefix)}
	if r.lo, err = edge(r.lo, s, q.Min); err != nil {
		return err
	}
	if r.hi, err = edge(r.hi, s, q.Max); err != nil {
		return err
	}
	if bytes.Compare(r.lo, r.hi) >= 0 {
		return mongoerr.New(mongoerr.MinNotBelowMax, "The value provided for min() does not come before the value provided for max()")
	}
	b := boundsOf(s.keys, s.arrays, nil)
	o := option{decided: len(conds) == 0}
	backward := false
	if out.sort != nil && s.arrays == 0 {
		backward, o.ordered = b.gives(s.keys, out.sort, false)
	}
	scan := newScan(s.index, s.name, s.prefix, s.keys, b, backward)
	scan.ranges, scan.min, scan.max = []span{r}, q.Min, q.Max
	o.scans = append(o.scans, scan)
	out.take(o, "min and max bound the hinted index")
	return nil
}

// edge returns the place of a min or max in the index, or otherwise when it is not given.
func edge(otherwise []byte, s *source, at bson.Document) ([]byte, error) {
	if len(at) == 0 {
		return otherwise, nil
	}
	key := slices.Clone(s.prefix)
	n := 0
	it := bson.Elements(at)
	for it.Next() {
		if n == len(s.keys) || s.keys[n].Path.String() != string(it.Key()) {
			n = -1
			break
		}
		key = bson.AppendKey(key, it.Value(), s.keys[n].Desc)
		n++
	}
	switch n {
	case 0:
		return otherwise, nil
	case len(s.keys):
		return key, nil
	}
	return nil, mongoerr.New(mongoerr.MinMaxOtherIndex, "The index chosen is not compatible with min/max")
}
