package engine

import (
	"slices"
	"strings"

	"oxbow/internal/query"
)

// conjunct is one condition that every result satisfies. Those inside an $elemMatch over documents hold for one and the same element: prefix is
// that array's path, and scopes names the elements they share, outermost first.
type conjunct struct {
	node   query.Node
	prefix string
	scopes []scope
}

// scope is one element that an $elemMatch picks: the number of the $elemMatch within the filter and how many parts its path has.
type scope struct{ number, parts int }

// conjuncts flattens a filter into its conditions.
func conjuncts(root query.Node) []conjunct {
	f := flattener{}
	if root != nil {
		f.add(conjunct{node: root})
	}
	return f.out
}

type flattener struct {
	out      []conjunct
	elements int
}

func (f *flattener) add(c conjunct) {
	switch n := c.node.(type) {
	case *query.And:
		for _, of := range n.Of {
			f.add(conjunct{of, c.prefix, c.scopes})
		}
		return
	case *query.Nor:
		if len(n.Of) > 1 {
			for _, of := range n.Of {
				f.add(conjunct{&query.Nor{Of: []query.Node{of}}, c.prefix, c.scopes})
			}
			return
		}
	case *query.Expr:
		if n.Expression != nil {
			for _, implied := range n.Expression.Conjuncts() {
				f.add(conjunct{implied, c.prefix, c.scopes})
			}
		}
	case *query.ElemMatch:
		if n.Object {
			at := join(c.prefix, n.Path.String())
			f.elements++
			inner := append(slices.Clone(c.scopes), scope{f.elements, parts(at)})
			before := len(f.out)
			f.add(conjunct{n.Of, at, inner})
			if len(f.out) == before { // no condition on the element still asks for one
				break
			}
			return
		}
	}
	f.out = append(f.out, c)
}

// parts counts the parts of a path.
func parts(path string) int { return strings.Count(path, ".") + 1 }

// sharedParts counts the leading parts that two paths have in common.
func sharedParts(a, b string) int {
	if a == b {
		return parts(a)
	}
	n := 0
	for a != "" && b != "" {
		headA, restA, _ := strings.Cut(a, ".")
		headB, restB, _ := strings.Cut(b, ".")
		if headA != headB {
			break
		}
		n++
		a, b = restA, restB
	}
	return n
}

// sameElement returns how many leading parts of their paths are certain to run through the same array elements for both conditions.
func sameElement(a, b conjunct) int {
	n := 0
	for i := range min(len(a.scopes), len(b.scopes)) {
		if a.scopes[i].number != b.scopes[i].number {
			break
		}
		n = a.scopes[i].parts
	}
	return n
}

// numbered reports whether a path names an array element by its index.
func numbered(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			return true
		}
	}
	return false
}
