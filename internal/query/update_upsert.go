package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Upsert appends the document that an upsert inserts: the filter's equalities, the operators with $setOnInsert, and an
// _id: the one that results, else newID. _id comes first.
func (u *Update) Upsert(dst []byte, newID [12]byte) ([]byte, error) {
	base, err := u.upsertBase()
	if err != nil {
		return dst, err
	}
	made, changed, err := u.apply(nil, base, -1, true)
	if err != nil {
		return dst, err
	}
	if !changed {
		made = base
	}
	id, ok := bson.Get(made, "_id")
	if !ok {
		id = bson.Value{Type: bson.TypeObjectID, Data: newID[:]}
	}
	if err := CheckID(id); err != nil {
		return dst, err
	}
	start := len(dst)
	out := appendIDFirst(dst, made, id, true)
	if len(out)-start > bson.MaxDocumentSize {
		return dst, mongoerr.New(mongoerr.UpsertTooLarge, "Document to upsert is larger than %d", bson.MaxDocumentSize)
	}
	return out, nil
}

// equality is a path and the value that a filter demands there.
type equality struct {
	path  string
	value bson.Value
}

// upsertBase returns the document of the filter's equalities, in the order of their paths; of _id's alone where a replacement follows.
func (u *Update) upsertBase() (bson.Document, error) {
	root := &updateNode{index: -1}
	if u.filter != nil {
		equalities, err := u.equalities()
		if err != nil {
			return nil, err
		}
		for _, e := range equalities {
			if err := root.insert(e.path, setField{e.value}, nil); err != nil {
				return nil, err
			}
		}
	}
	root.seal()
	base, _, err := applyTree(nil, emptyDocument, root, true)
	return base, err
}

// equalities collects what the filter fixes, sorted by path; two of them may not be about one path or one below the other.
func (u *Update) equalities() ([]equality, error) {
	all, err := appendEqualities(nil, u.filter.Root())
	if err != nil {
		return nil, err
	}
	if u.replace != nil {
		return idEquality(all)
	}
	slices.SortStableFunc(all, func(a, b equality) int { return strings.Compare(a.path, b.path) })
	for i, e := range all {
		if err := checkUpdatePath(e.path); err != nil {
			return nil, err
		}
		for _, before := range all[:i] {
			if before.path == e.path {
				return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", e.path)
			}
			if strings.HasPrefix(e.path, before.path+".") {
				return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, both paths '%s' and '%s' are matched",
					e.path, before.path)
			}
		}
	}
	return all, nil
}

// idEquality keeps what is about _id, which a replacement must have whole.
func idEquality(all []equality) ([]equality, error) {
	var ids []equality
	for _, e := range all {
		if strings.HasPrefix(e.path, "_id.") {
			return nil, mongoerr.New(mongoerr.NotExactValueField, "field at '_id' must be exactly specified, field at sub-path '%s'found", e.path)
		}
		if e.path == "_id" {
			ids = append(ids, e)
		}
	}
	if len(ids) > 1 {
		return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, path '_id' is matched twice")
	}
	return ids, nil
}

// appendEqualities collects equalities that hold for every document that matches: $eq, $in and $all of one value, under $and and $or of one.
func appendEqualities(all []equality, n Node) ([]equality, error) {
	var err error
	switch n := n.(type) {
	case *And:
		for _, child := range n.Of {
			if all, err = appendEqualities(all, child); err != nil {
				return nil, err
			}
		}
	case *Or:
		if len(n.Of) == 1 {
			return appendEqualities(all, n.Of[0])
		}
	case *Compare:
		if n.Op == Eq {
			all = append(all, equality{n.Path.String(), n.Value})
		}
	case *In:
		if len(n.Values) == 1 && len(n.Regexes) == 0 {
			all = append(all, equality{n.Path.String(), n.Values[0]})
		}
	case *Expr:
		return nil, mongoerr.New(mongoerr.QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
	}
	return all, nil
}
