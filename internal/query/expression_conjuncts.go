package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
)

// Conjuncts returns plain predicates that the expression implies where it is used as a filter: every document for which it is true
// matches each of them. They narrow a route or an index scan; they do not replace the expression.
//
// In expressions comparison crosses types and a missing field is less than null, so {$lt: ["$a", 5]} implies nothing about a. What does is an
// equality, a pair of bounds of one type class, and a lower bound on a class above arrays, as that or a still higher class.
func (e *Expression) Conjuncts() []Node { return implied(e.root) }

func implied(n node) []Node {
	switch n := n.(type) {
	case *andNode:
		if n.any {
			return impliedByAny(n.of)
		}
		return impliedByAll(n.of)
	case *compareNode:
		if b, ok := boundOf(n); ok {
			return impliedByBound(b)
		}
	case *inNode:
		return impliedByIn(n)
	}
	return nil
}

// impliedByAny needs something implied by every branch.
func impliedByAny(of []node) []Node {
	if len(of) == 0 {
		return nil
	}
	var out Or
	for _, n := range of {
		parts := implied(n)
		switch len(parts) {
		case 0:
			return nil
		case 1:
			out.Of = append(out.Of, parts[0])
		default:
			out.Of = append(out.Of, &And{Of: parts})
		}
	}
	return []Node{&out}
}

func impliedByAll(of []node) []Node {
	var out []Node
	var bounds []bound
	for _, n := range of {
		out = append(out, implied(n)...)
		if c, ok := n.(*compareNode); ok {
			if b, ok := boundOf(c); ok {
				bounds = append(bounds, b)
			}
		}
	}
	for _, low := range bounds {
		if low.rel != relGt && low.rel != relGte {
			continue
		}
		for _, high := range bounds {
			if (high.rel == relLt || high.rel == relLte) && high.path == low.path && bson.Class(high.value.Type) == bson.Class(low.value.Type) && low.sound() && high.sound() {
				out = append(out, low.node(), high.node())
			}
		}
	}
	return out
}

// bound is a comparison of a path of the document with a constant: path rel value.
type bound struct {
	path  string
	rel   relation
	value bson.Value
}

func boundOf(n *compareNode) (bound, bool) {
	path, value, rel := n.left, n.right, n.rel
	if _, ok := path.(constant); ok {
		path, value = value, path
		if flipped, ok := map[relation]relation{relGt: relLt, relGte: relLte, relLt: relGt, relLte: relGte}[rel]; ok {
			rel = flipped
		}
	}
	k, ok := value.(constant)
	if !ok || k.value.Type == 0 || k.value.Type == bson.TypeUndefined {
		return bound{}, false
	}
	text, ok := pathOf(path)
	return bound{text, rel, k.value}, ok
}

// pathOf returns the path of a node that reads one from the document.
func pathOf(n node) (string, bool) {
	switch n := n.(type) {
	case rootField:
		return string(n), true
	case *rootPath:
		return strings.Join(n.parts, "."), true
	}
	return "", false
}

// sound reports whether a value that the path has in an expression is one that it has in a query. A path that goes through an array has the
// array of all values in an expression, and each of them in a query; a path through numbers is an index in a query only.
func (b bound) sound() bool {
	switch b.value.Type {
	case bson.TypeRegex, bson.TypeUndefined, 0:
		return false
	case bson.TypeArray:
		return !strings.Contains(b.path, ".")
	case bson.TypeDouble, bson.TypeDecimal128:
		n, _ := bson.NumberOf(b.value)
		return b.rel == relEq || !n.IsNaN() // a query's $gt and $lt never hold for NaN
	}
	return true
}

func (b bound) node() Node {
	op := map[relation]Op{relEq: Eq, relGt: Gt, relGte: Gte, relLt: Lt, relLte: Lte}[b.rel]
	return &Compare{Path: bson.ParsePath(b.path), Op: op, Value: b.value}
}

func impliedByBound(b bound) []Node {
	if !b.sound() {
		return nil
	}
	switch b.rel {
	case relEq:
		return []Node{b.node()}
	case relGt, relGte:
		class := bson.Class(b.value.Type)
		if class <= bson.Class(bson.TypeArray) || b.value.Type == bson.TypeMaxKey {
			return nil
		}
		var above []bson.Type
		for _, t := range allTypes {
			if bson.Class(t) > class {
				above = append(above, t)
			}
		}
		return []Node{&Or{Of: []Node{b.node(), &Type{Path: bson.ParsePath(b.path), Types: above}}}}
	}
	return nil
}

// allTypes are the types that sort above arrays.
var allTypes = []bson.Type{
	bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeRegex,
	bson.TypeDBPointer, bson.TypeJavaScript, bson.TypeCodeWithScope, bson.TypeMaxKey,
}

func impliedByIn(n *inNode) []Node {
	path, ok := pathOf(n.value)
	k, fixed := n.array.(constant)
	if !ok || !fixed || k.value.Type != bson.TypeArray {
		return nil
	}
	in := &In{Path: bson.ParsePath(path)}
	it := bson.Elements(k.value.Data)
	for it.Next() {
		b := bound{path, relEq, it.Value()}
		if !b.sound() {
			return nil
		}
		in.Values = append(in.Values, b.value)
	}
	slices.SortFunc(in.Values, bson.Compare)
	in.Values = slices.CompactFunc(in.Values, bson.Equal)
	return []Node{in}
}
