package engine

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// indexBounds is what a filter's conditions say about the keys of one index.
type indexBounds struct {
	fields  []fieldBounds
	decided []bool // by condition: a key within all bounds means that the condition holds
	present bool   // every result has a value under one of the index's paths
}

// fieldBounds are the bounds of one field of an index.
type fieldBounds struct {
	path   string
	in     intervals
	arrays bool // some document has an array along the path
	used   []int
}

// candidate is a condition's bound on a field.
type candidate struct {
	conjunct int
	bound    bound
}

// boundsOf derives the bounds of an index with the given keys. arrays has bit i set when some document has an array along the path of key i.
//
// One condition of a multikey field may be satisfied by one element and the next condition by another, so their bounds are only put
// together where an $elemMatch ties both to the same element, or where their paths share no array
// (https://www.mongodb.com/docs/manual/core/indexes/index-types/index-multikey/multikey-index-bounds/).
func boundsOf(keys []IndexKey, arrays uint32, conds []conjunct) indexBounds {
	b := indexBounds{fields: make([]fieldBounds, len(keys)), decided: make([]bool, len(conds))}
	for i, k := range keys {
		b.fields[i] = fieldBounds{path: k.Path.String(), in: everything(), arrays: arrays&(1<<i) != 0}
	}
	for i := range b.fields {
		f := &b.fields[i]
		for _, c := range candidates(f, conds) {
			if b.compatible(i, c.conjunct, conds) {
				f.take(c)
				b.present = b.present || c.bound.present()
			}
		}
		for _, c := range candidates(f, conds) {
			used := slices.Contains(f.used, c.conjunct)
			if used && (!f.arrays && c.bound.exact || c.bound.tight) && conds[c.conjunct].prefix == "" {
				b.decided[c.conjunct] = true
			}
		}
	}
	return b
}

// candidates returns the bounds that conditions set on a field, the narrowest first.
func candidates(f *fieldBounds, conds []conjunct) []candidate {
	r := deriver{path: f.path, arrays: f.arrays}
	positions := numbered(f.path)
	if positions {
		r.arrays = true
	}
	var out []candidate
	for n, c := range conds {
		b, ok := r.on(c.node, c.prefix, false)
		if !ok {
			continue
		}
		if positions {
			// A path with a number may run both into an element and into a field of that name: what is missing can't be told from
			// the key; nor does it reach elements of arrays in arrays, as $elemMatch does.
			if !b.present() || c.prefix != "" {
				continue
			}
			b.exact, b.tight = false, false
		}
		out = append(out, candidate{n, b})
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return width(a.bound.in) - width(b.bound.in) })
	return out
}

// compatible reports whether a condition may bound field i beside the conditions that bound fields already.
func (b *indexBounds) compatible(i, cond int, conds []conjunct) bool {
	f := &b.fields[i]
	for j := range b.fields {
		o := &b.fields[j]
		if !f.arrays && !o.arrays && !(i == j && numbered(f.path)) {
			continue
		}
		shared := sharedParts(f.path, o.path)
		for _, u := range o.used {
			if (u != cond || i != j) && shared > 0 && (numbered(f.path) || sameElement(conds[cond], conds[u]) < shared) {
				return false
			}
		}
	}
	return true
}

func (f *fieldBounds) take(c candidate) {
	f.in = intersect(f.in, c.bound.in)
	f.used = append(f.used, c.conjunct)
}

// present reports whether the predicate holds only for documents with a value at the path: all others have the key of null.
func (b bound) present() bool {
	return b.exists || !b.in.contains(bson.AppendKey(nil, bson.Null, false))
}

// all reports whether every condition is decided by the keys.
func (b *indexBounds) all() bool { return !slices.Contains(b.decided, false) }

// implies reports whether the conditions imply a partial index's filter; false when unsure.
func implies(conds []conjunct, partial query.Node) bool {
	switch n := partial.(type) {
	case nil:
		return true
	case *query.And:
		for _, of := range n.Of {
			if !implies(conds, of) {
				return false
			}
		}
		return true
	case *query.Or:
		for _, of := range n.Of {
			if implies(conds, of) {
				return true
			}
		}
	}
	for _, c := range conds {
		if conditionImplies(c, partial) {
			return true
		}
	}
	return false
}

// conditionImplies compares a condition with one predicate of a partial filter.
func conditionImplies(c conjunct, partial query.Node) bool {
	if or, ok := c.node.(*query.Or); ok && c.prefix == "" && len(or.Of) > 0 {
		for _, of := range or.Of {
			if !implies(conjuncts(of), partial) {
				return false
			}
		}
		return true
	}
	if c.prefix == "" && sameNode(c.node, partial) {
		return true
	}
	path, ok := leafPath(partial)
	if !ok || numbered(path) {
		return false
	}
	r := deriver{path: path, arrays: true}
	has, ok := r.on(c.node, c.prefix, false)
	if !ok {
		return false
	}
	if e, ok := partial.(*query.Exists); ok {
		return e.Want && has.present()
	}
	wants, ok := r.on(partial, "", false)
	return ok && wants.tight && has.in.subset(wants.in)
}

// sameNode reports whether two predicates are certain to be the same.
func sameNode(a, b query.Node) bool {
	switch x := a.(type) {
	case *query.Compare:
		y, ok := b.(*query.Compare)
		return ok && x.Op == y.Op && x.Path.String() == y.Path.String() && bson.Equal(x.Value, y.Value)
	case *query.Exists:
		y, ok := b.(*query.Exists)
		return ok && x.Want == y.Want && x.Path.String() == y.Path.String()
	case *query.Type:
		y, ok := b.(*query.Type)
		return ok && x.Path.String() == y.Path.String() && slices.Equal(x.Types, y.Types)
	case *query.In:
		y, ok := b.(*query.In)
		return ok && x.Path.String() == y.Path.String() && len(x.Regexes)+len(y.Regexes) == 0 &&
			slices.EqualFunc(x.Values, y.Values, bson.Equal)
	}
	return false
}
