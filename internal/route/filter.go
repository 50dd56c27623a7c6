package route

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// reader turns predicates into sets for one layout. It relies on what Place lets in: every document of a time layout has a value of the unit's
// type there, none of a hash layout has an array there.
type reader struct{ layout Layout }

// matching returns a set of all documents that a predicate matches, or, with not, that it does not match. The negation is pushed
// down to the comparisons, since the complement of a set that is too large would be too small.
func (r reader) matching(n query.Node, not bool) set {
	switch n := n.(type) {
	case nil:
		if not {
			return nothing
		}
		return anything
	case *query.And:
		return r.all(n.Of, not)
	case *query.Or:
		return r.some(n.Of, not)
	case *query.Nor:
		return r.some(n.Of, !not)
	}
	return r.leaf(n, not)
}

// leaf is matching for a predicate that has no others below it, and for $expr.
func (r reader) leaf(n query.Node, not bool) set {
	if e, ok := n.(*query.Expr); ok {
		if not {
			return anything
		}
		return r.intersection(e.Expression.Conjuncts(), false)
	}
	path, known := pathOf(n)
	if !known {
		return anything
	}
	s := anything
	if t := r.layout.Time; t != nil && t.Field.String() == path {
		s = r.times(t, n, not)
	}
	if h := r.layout.Hash; h != nil && h.Field.String() == path {
		s = s.and(r.slots(h, n, not))
	}
	return s
}

// pathOf returns the path of a predicate about one; known is false for others, of which any document may match.
func pathOf(n query.Node) (path string, known bool) {
	var p bson.Path
	switch n := n.(type) {
	case *query.Compare:
		p = n.Path
	case *query.In:
		p = n.Path
	case *query.Exists:
		p = n.Path
	case *query.Type:
		p = n.Path
	case *query.Regex:
		p = n.Path
	case *query.Mod:
		p = n.Path
	case *query.Size:
		p = n.Path
	case *query.ElemMatch:
		p = n.Path
	case *query.Bits:
		p = n.Path
	default:
		return "", false
	}
	return p.String(), true
}

// all is matching for a conjunction.
func (r reader) all(of []query.Node, not bool) set {
	if not {
		return r.union(of, true)
	}
	return r.intersection(of, false)
}

// some is matching for a disjunction.
func (r reader) some(of []query.Node, not bool) set {
	if not {
		return r.intersection(of, true)
	}
	return r.union(of, false)
}

func (r reader) intersection(of []query.Node, not bool) set {
	s := anything
	for _, n := range of {
		if s = s.and(r.matching(n, not)); len(s) == 0 {
			break
		}
	}
	return s
}

func (r reader) union(of []query.Node, not bool) set {
	s := nothing
	for _, n := range of {
		if s = s.or(r.matching(n, not)); s.isAnything() {
			break
		}
	}
	return s
}
