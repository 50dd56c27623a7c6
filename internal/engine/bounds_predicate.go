package engine

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// bound is what a predicate on one path says about the index keys of that path. It is always sound: where the predicate holds for a
// document, at least one of the document's keys (a non-sparse index has one for every document) lies in in.
type bound struct {
	in intervals
	// exact: as long as no array is under the path, a key lies in in exactly when the predicate holds.
	exact bool
	// tight: even with arrays, a key in in means that the predicate holds. Only then may in be complemented for a multikey index.
	tight bool
	// exists: the predicate holds only where the path has a value, so that a sparse index has the document.
	exists bool
}

// deriver derives bounds for one path. arrays says that the index is multikey: predicates may then be satisfied by different elements.
type deriver struct {
	path   string // the index key's path
	arrays bool
}

// on returns the bound that node sets on the deriver's path, where node's own paths stand below prefix; ok is false when it sets none.
func (r deriver) on(node query.Node, prefix string, negated bool) (b bound, ok bool) {
	switch n := node.(type) {
	case *query.And:
		return r.combine(n.Of, prefix, negated, negated)
	case *query.Or:
		return r.combine(n.Of, prefix, negated, !negated)
	case *query.Nor:
		return r.combine(n.Of, prefix, !negated, negated)
	case *query.ElemMatch:
		return r.onElements(n, prefix, negated)
	case *query.Expr:
		return r.onExpression(n, prefix, negated)
	}
	path, known := leafPath(node)
	if !known || join(prefix, path) != r.path {
		return bound{}, false
	}
	b, ok = predicateBound(node, false)
	if !ok || !negated {
		return b, ok
	}
	if !b.exact || r.arrays && !b.tight {
		return bound{}, false
	}
	return bound{in: complement(b.in), exact: true}, true
}

// combine joins the bounds of nodes: as alternatives, each of which must set a bound, or as conditions, of which any may.
// A Nor negates its alternatives, so it comes here as negated conditions.
func (r deriver) combine(nodes []query.Node, prefix string, negated, alternatives bool) (bound, bool) {
	if alternatives {
		return r.anyOf(nodes, prefix, negated)
	}
	return r.allOf(nodes, prefix, negated)
}

func (r deriver) anyOf(nodes []query.Node, prefix string, negated bool) (bound, bool) {
	out := bound{exact: true, tight: true, exists: true}
	for _, n := range nodes {
		b, ok := r.on(n, prefix, negated)
		if !ok {
			return bound{}, false
		}
		out.in = append(out.in, b.in...)
		out.exact = out.exact && b.exact
		out.tight = out.tight && b.tight
		out.exists = out.exists && b.exists
	}
	out.in = normalized(out.in)
	return out, len(nodes) > 0
}

func (r deriver) allOf(nodes []query.Node, prefix string, negated bool) (bound, bool) {
	out := bound{in: everything(), exact: true, tight: true}
	found := false
	for _, n := range nodes {
		b, ok := r.on(n, prefix, negated)
		if !ok {
			out.exact, out.tight = false, false
			continue
		}
		switch {
		case !found:
			out.in = b.in
		case !r.arrays:
			out.in = intersect(out.in, b.in)
		case narrower(b.in, out.in):
			out.in = b.in
		}
		out.exact = out.exact && b.exact
		out.tight = out.tight && b.tight && (!found || !r.arrays)
		out.exists = out.exists || b.exists
		found = true
	}
	return out, found
}

// narrower is a guess at which of two sets of intervals holds fewer keys.
func narrower(a, b intervals) bool { return width(a) < width(b) }

// width ranks intervals: nothing, points, ranges closed at both ends, at one end, everything.
func width(s intervals) int {
	switch {
	case len(s) == 0:
		return 0
	case s.points():
		return len(s)
	case s.full():
		return 1 << 30
	}
	w := 0
	for _, i := range s {
		switch {
		case i.point():
			w++
		case len(i.lo.key) == 0 || len(i.hi.key) == 0:
			w += 1 << 20
		default:
			w += 1 << 10
		}
	}
	return w
}

// onElements takes an $elemMatch: one element satisfies all of it, and its values are among the document's keys.
func (r deriver) onElements(n *query.ElemMatch, prefix string, negated bool) (bound, bool) {
	// Within an element that is an array itself, a number names a place that the index's path doesn't reach; and an index that has the outer array
	// too has the inner one as a whole.
	if negated || numbered(r.path) {
		return bound{}, false
	}
	at := join(prefix, n.Path.String())
	var b bound
	var ok bool
	if n.Object {
		b, ok = r.on(n.Of, at, false)
	} else if at == r.path {
		b.in, ok = elementBound(n.Of, false)
	}
	b.exact, b.tight = false, false
	return b, ok
}

// elementBound gives the intervals of one array element that satisfies node, whose leaves have an empty path.
func elementBound(node query.Node, negated bool) (intervals, bool) {
	var nodes []query.Node
	alternatives, inner := negated, negated
	switch n := node.(type) {
	case *query.And:
		nodes = n.Of
	case *query.Or:
		nodes, alternatives = n.Of, !negated
	case *query.Nor:
		nodes, inner = n.Of, !negated
	default:
		b, ok := predicateBound(node, true)
		if !ok || !negated {
			return b.in, ok
		}
		return complement(b.in), b.exact
	}
	var out intervals
	found := false
	for _, n := range nodes {
		in, ok := elementBound(n, inner)
		switch {
		case !ok && alternatives:
			return nil, false
		case !ok:
		case !found:
			out, found = in, true
		case alternatives:
			out = union(out, in)
		default:
			out = intersect(out, in)
		}
	}
	return out, found
}

// onExpression takes the plain predicates that $expr implies.
func (r deriver) onExpression(n *query.Expr, prefix string, negated bool) (bound, bool) {
	if negated || n.Expression == nil {
		return bound{}, false
	}
	b, ok := r.allOf(n.Expression.Conjuncts(), prefix, false)
	b.exact, b.tight = false, false
	return b, ok
}

// leafPath returns the path of a predicate on one path.
func leafPath(node query.Node) (string, bool) {
	switch n := node.(type) {
	case *query.Compare:
		return n.Path.String(), true
	case *query.In:
		return n.Path.String(), true
	case *query.Exists:
		return n.Path.String(), true
	case *query.Type:
		return n.Path.String(), true
	case *query.Regex:
		return n.Path.String(), true
	case *query.Mod:
		return n.Path.String(), true
	case *query.Size:
		return n.Path.String(), true
	case *query.ElemMatch:
		return n.Path.String(), true
	case *query.Bits:
		return n.Path.String(), true
	}
	return "", false
}

// predicateBound gives the bound of a leaf. element says that it applies to one array element, which is never missing.
func predicateBound(node query.Node, element bool) (bound, bool) {
	switch n := node.(type) {
	case *query.Compare:
		return compareBound(n.Op, n.Value, element), true
	case *query.In:
		return inBound(n, element), true
	case *query.Exists:
		if n.Want {
			return bound{in: everything(), exists: true}, true
		}
		return bound{in: nullish()}, true
	case *query.Type:
		return typeBound(n.Types), true
	case *query.Regex:
		return bound{in: regexIntervals(n), exists: true}, true
	case *query.Mod:
		return bound{in: intervals{classOf(bson.TypeInt64)}, exists: true}, true
	case *query.Bits:
		return bound{in: normalized(intervals{classOf(bson.TypeInt64), classOf(bson.TypeBinary)}), exists: true}, true
	}
	return bound{}, false
}

// compareBound follows type bracketing: but for equality a comparison matches within its value's class only, save that MinKey and
// MaxKey compare with everything.
func compareBound(op query.Op, v bson.Value, element bool) bound {
	switch {
	case v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
		return bound{in: nullish(), exact: !element && v.Type == bson.TypeNull && op == query.Eq}
	case v.Type == bson.TypeArray:
		return arrayBound(op, v, element)
	case op == query.Eq:
		return bound{in: intervals{pointOf(v)}, exact: true, tight: true, exists: true}
	case v.Type == bson.TypeMinKey || v.Type == bson.TypeMaxKey:
		return bound{in: everything()}
	}
	class, at := classOf(v.Type), pointOf(v)
	if isNaN(v) {
		return bound{in: intervals{class}, exists: true}
	}
	if bson.IsNumber(v.Type) {
		class.lo = leastNumber()
	}
	out := class
	switch op {
	case query.Lt:
		out.hi = at.lo
	case query.Lte:
		out.hi = at.hi
	case query.Gt:
		out.lo = at.hi
	case query.Gte:
		out.lo = at.lo
	}
	return bound{in: normalized(intervals{out}), exact: true, tight: true, exists: true}
}

// arrayBound: an array equals a value that is the array or contains it. Its own elements are the keys of the former, so its first
// element finds it; a range over arrays is found by no key.
func arrayBound(op query.Op, v bson.Value, element bool) bound {
	if op != query.Eq {
		return bound{in: everything()}
	}
	in := intervals{pointOf(v)}
	if element {
		return bound{in: in, exact: true}
	}
	if _, first, ok := bson.First(v.Data); ok {
		if first.Type == bson.TypeNull || first.Type == bson.TypeUndefined {
			in = append(in, nullish()...)
		} else {
			in = append(in, pointOf(first))
		}
	} else {
		in = append(in, nullish()...)
	}
	return bound{in: normalized(in)}
}

func inBound(n *query.In, element bool) bound {
	out := bound{exact: len(n.Regexes) == 0, tight: len(n.Regexes) == 0, exists: true}
	for _, v := range n.Values {
		b := compareBound(query.Eq, v, element)
		out.in = append(out.in, b.in...)
		out.exact = out.exact && b.exact
		out.tight = out.tight && b.tight
		out.exists = out.exists && b.exists
	}
	for _, r := range n.Regexes {
		out.in = append(out.in, regexIntervals(r)...)
	}
	out.in = normalized(out.in)
	return out
}

// typeBound: a type lies within its class; an array has no key of its own.
func typeBound(types []bson.Type) bound {
	out := bound{exists: true}
	for _, t := range types {
		switch t {
		case bson.TypeArray:
			return bound{in: everything(), exists: true}
		case bson.TypeNull, bson.TypeUndefined:
			out.in = append(out.in, nullish()...)
		default:
			out.in = append(out.in, classOf(t))
		}
	}
	out.in = normalized(out.in)
	return out
}

// regexIntervals: a pattern matches strings, from its literal prefix on where it has one, and the same regular expression as a value.
func regexIntervals(n *query.Regex) intervals {
	text := classOf(bson.TypeString)
	if n.Prefix != "" {
		text.lo = pointOf(stringValue(n.Prefix)).lo
		if end := prefixEnd([]byte(n.Prefix)); end != nil {
			text.hi = pointOf(stringValue(string(end))).lo
		}
	}
	return normalized(intervals{text, classOf(bson.TypeRegex)})
}

func stringValue(s string) bson.Value {
	d := make([]byte, 0, len(s)+5)
	n := len(s) + 1
	d = append(d, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return bson.Value{Type: bson.TypeString, Data: append(append(d, s...), 0)}
}

// join puts a prefix and a path together.
func join(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "":
		return prefix
	}
	return prefix + "." + path
}
