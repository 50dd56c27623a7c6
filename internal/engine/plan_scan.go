package engine

import (
	"bytes"
	"slices"
	"sort"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// maxRanges is how many ranges of keys a scan seeks one after the other; an index with more combinations of points ($in lists on several
// fields) is scanned from the first to the last of them, and the keys in between skipped.
const maxRanges = 4096

// scan reads one range after another of an index's entries, or of the documents in the order of their _id.
type scan struct {
	index    *index // nil: the documents themselves
	name     string
	keys     []IndexKey
	bounds   indexBounds
	backward bool
	ranges   []span        // of whole keys, in ascending order
	checks   []check       // what a key within the ranges must also satisfy
	skip     int           // length of the keys' prefix
	multikey bool          // a document may have several entries
	min, max bson.Document // of the query, in place of bounds
}

// check tests one field of a key against the field's bounds; a field without spans is passed over.
type check struct {
	desc  bool
	spans []span
}

// newScan lays the bounds of an index out as ranges of its keys.
func newScan(ix *index, name string, prefix []byte, keys []IndexKey, b indexBounds, backward bool) scan {
	s := scan{index: ix, name: name, keys: keys, bounds: b, backward: backward, skip: len(prefix)}
	for _, f := range b.fields {
		s.multikey = s.multikey || f.arrays
	}
	prefixes := [][]byte{slices.Clone(prefix)}
	at := 0
	for at < len(keys) && b.fields[at].in.points() && len(prefixes)*len(b.fields[at].in) <= maxRanges {
		prefixes = extend(prefixes, b.fields[at].in.spans(keys[at].Desc))
		at++
	}
	var hull bool
	s.ranges, hull = rangesUnder(prefixes, b.fields, keys, at)
	s.checks = checksFrom(b.fields, keys, at, hull)
	return s
}

// extend puts each point behind each prefix.
func extend(prefixes [][]byte, points []span) [][]byte {
	out := make([][]byte, 0, len(prefixes)*len(points))
	for _, p := range prefixes {
		for _, v := range points {
			out = append(out, slices.Concat(p, v.lo))
		}
	}
	return out
}

// rangesUnder returns the ranges of keys below the prefixes, bounded by field at; too many of them become one a prefix, from first to last.
func rangesUnder(prefixes [][]byte, fields []fieldBounds, keys []IndexKey, at int) (ranges []span, hull bool) {
	var spans []span
	if at == len(keys) || fields[at].in.full() {
		spans = []span{{}}
	} else {
		spans = fields[at].in.spans(keys[at].Desc)
		if n := len(spans); n > 1 && len(prefixes)*n > maxRanges {
			spans, hull = []span{{spans[0].lo, spans[n-1].hi}}, true
		}
	}
	out := make([]span, 0, len(prefixes)*len(spans))
	for _, p := range prefixes {
		for _, v := range spans {
			r := span{lo: slices.Concat(p, v.lo)}
			if v.hi == nil {
				r.hi = prefixEnd(p)
			} else {
				r.hi = slices.Concat(p, v.hi)
			}
			out = append(out, r)
		}
	}
	return out, hull
}

// checksFrom returns the checks that are left behind a range over field at, or nil. hull says that the range also holds keys outside of that
// field's own bounds.
func checksFrom(fields []fieldBounds, keys []IndexKey, at int, hull bool) []check {
	needs := func(i int) bool { return !fields[i].in.full() && (i > at || hull) }
	last := -1
	for i := at; i < len(fields); i++ {
		if needs(i) {
			last = i
		}
	}
	out := make([]check, last+1)
	for i := range out {
		out[i].desc = keys[i].Desc
		if i >= at && needs(i) {
			out[i].spans = fields[i].in.spans(keys[i].Desc)
		}
	}
	return out
}

// admits reports whether an entry's fields, what stands behind the prefix, satisfy the checks. If they don't, from and above say where in fields
// the next candidate is: at the first key not below from, or, when from is nil, above all keys that start with fields[:above].
func (s *scan) admits(fields []byte) (ok bool, from []byte, above int) {
	at := 0
	for i := range s.checks {
		c := &s.checks[i]
		n := bson.KeyLen(fields[at:], c.desc)
		if n == 0 {
			return false, nil, len(fields)
		}
		if c.spans != nil {
			part := fields[at : at+n]
			next := sort.Search(len(c.spans), func(j int) bool { return c.spans[j].hi == nil || bytes.Compare(part, c.spans[j].hi) < 0 })
			if next == len(c.spans) {
				return false, nil, at
			}
			if bytes.Compare(part, c.spans[next].lo) < 0 {
				return false, c.spans[next].lo, at
			}
		}
		at += n
	}
	return true, nil, 0
}

// singlePoint reports whether field i is held to one value.
func (b *indexBounds) singlePoint(i int) bool {
	in := b.fields[i].in
	return len(in) == 1 && in[0].point()
}

// gives reports whether a scan of the index gives a sort's order, and whether backward. Fields held to one value don't count; with lists,
// neither do those held to a list of values, which is true of each range of such a scan by itself.
//
// A path through arrays sorts by its least or greatest element, which a scan meets first only if the bounds leave out no element of the
// array, neither on the path itself nor on another one through the same array.
func (b *indexBounds) gives(keys []IndexKey, order *query.Sort, lists bool) (backward, ok bool) {
	at, first := 0, true
	for _, want := range order.Keys {
		path := want.Path.String()
		if b.held(path) {
			continue
		}
		for at < len(keys) && keys[at].Path.String() != path && b.constant(at, lists) {
			at++
		}
		if at == len(keys) || keys[at].Path.String() != path || !b.sortable(at, order) {
			return false, false
		}
		reverse := keys[at].Desc != want.Desc
		if !first && reverse != backward {
			return false, false
		}
		backward, first = reverse, false
		at++
	}
	return backward, true
}

// held reports whether all results have the same value at path.
func (b *indexBounds) held(path string) bool {
	for i := range b.fields {
		if f := &b.fields[i]; f.path == path && !f.arrays && b.singlePoint(i) && !numbered(path) {
			return true
		}
	}
	return false
}

func (b *indexBounds) constant(i int, lists bool) bool {
	return b.singlePoint(i) || lists && b.fields[i].in.points()
}

func (b *indexBounds) sortable(i int, order *query.Sort) bool {
	f := &b.fields[i]
	if numbered(f.path) {
		return false
	}
	if !f.arrays {
		return true
	}
	for j := range b.fields {
		if sharedParts(f.path, b.fields[j].path) > 0 && !b.fields[j].in.full() {
			return false
		}
	}
	for _, k := range order.Keys {
		if p := k.Path.String(); p != f.path && sharedParts(f.path, p) > 0 {
			return false
		}
	}
	return true
}
