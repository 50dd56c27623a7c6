package route

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// slots returns the slots of a predicate on the hash field. Only equality tells a slot; arrays are never stored, and a missing
// field lies where null does.
func (r reader) slots(h *Hash, n query.Node, not bool) set {
	switch n := n.(type) {
	case *query.Compare:
		if n.Op == query.Eq && !not {
			return h.points([]bson.Value{n.Value})
		}
	case *query.In:
		if len(n.Regexes) == 0 && !not {
			return h.points(n.Values)
		}
	case *query.Exists:
		if n.Want == not {
			return h.points([]bson.Value{bson.Null})
		}
	case *query.Type:
		if !not {
			return h.ofTypes(n.Types)
		}
	case *query.Size, *query.ElemMatch:
		return when(not)
	}
	return anything
}

// points returns the slots of some values.
func (h *Hash) points(values []bson.Value) set {
	slots := make([]int, 0, min(len(values), h.Count))
	for _, v := range values {
		if v.Type == bson.TypeArray {
			continue
		}
		slots = append(slots, h.slot(v))
	}
	if len(slots) == 0 {
		return nothing
	}
	slices.Sort(slots)
	return set{{slots: slices.Compact(slots)}}
}

// ofTypes returns the slots of documents whose field has one of some types.
func (h *Hash) ofTypes(types []bson.Type) set {
	s := nothing
	for _, t := range types {
		switch t {
		case bson.TypeNull, bson.TypeUndefined:
			s = h.points([]bson.Value{bson.Null})
		case bson.TypeArray:
		default:
			return anything
		}
	}
	return s
}
