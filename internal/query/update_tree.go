package query

import (
	"slices"
	"strconv"
	"strings"

	"oxbow/internal/mongoerr"
)

// updateNode is one step of an update's tree of paths: a leaf with an operator, or an inner node with children. It does not change once
// it is compiled.
type updateNode struct {
	name       string
	key        []byte // name as bytes
	index      int    // of a name that is an array index, else -1
	op         fieldOperator
	children   []*updateNode // in the order in which missing fields are appended
	byName     map[string]int
	positional *updateNode  // the child "$"
	array      bool         // the children stand for array elements: $[] and $[identifier]
	filter     *arrayFilter // of a child of an array node; nil for $[]
}

// child returns the position of the child with the name, or -1.
func (n *updateNode) child(name []byte) int {
	if n.byName != nil {
		if i, ok := n.byName[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, c := range n.children {
		if c.name == string(name) {
			return i
		}
	}
	return -1
}

// add puts a child in its place.
func (n *updateNode) add(c *updateNode) {
	i, _ := slices.BinarySearchFunc(n.children, c, compareSteps)
	n.children = slices.Insert(n.children, i, c)
}

// seal builds the look-up tables of the tree; it runs once, when the tree is complete.
func (n *updateNode) seal() {
	if len(n.children) > linearChildren {
		n.byName = make(map[string]int, len(n.children))
		for i, c := range n.children {
			n.byName[c.name] = i
		}
	}
	for _, c := range n.children {
		c.seal()
	}
	if n.positional != nil {
		n.positional.seal()
	}
}

// compareSteps orders the children of a node: array indexes by value, then other names by bytes
// (https://www.mongodb.com/docs/manual/reference/operator/update/#behavior, since 5.0).
func compareSteps(a, b *updateNode) int {
	switch {
	case a.index >= 0 && b.index >= 0 && a.index != b.index:
		return a.index - b.index
	case (a.index >= 0) != (b.index >= 0):
		return b.index - a.index
	}
	return strings.Compare(a.name, b.name)
}

// newStep returns a node for one part of a path.
func newStep(name string) *updateNode {
	return &updateNode{name: name, key: []byte(name), index: arrayIndex(name)}
}

// maxIndexDigits keeps an index inside an int and far beyond what padding allows.
const maxIndexDigits = 10

// arrayIndex returns the array index that a path's part stands for, or -1.
func arrayIndex(part string) int {
	if part == "" || len(part) > maxIndexDigits {
		return -1
	}
	index := 0
	for i := 0; i < len(part); i++ {
		if part[i] < '0' || part[i] > '9' {
			return -1
		}
		index = index*10 + int(part[i]-'0')
	}
	return index
}

// insert adds an operator at a path; filters holds the array filters by identifier.
func (n *updateNode) insert(path string, op fieldOperator, filters map[string]*arrayFilter) error {
	parts := strings.Split(path, ".")
	at := n
	for i, part := range parts {
		identified := isIdentifier(part)
		last := i == len(parts)-1
		if at != n && !at.fits(identified) {
			return pathConflict(path, strings.Join(parts[:i], "."))
		}
		next, err := at.step(part, i, path, filters)
		if err != nil {
			return err
		}
		if next != nil && (last || next.op != nil) {
			return pathConflict(path, strings.Join(parts[:i+1], "."))
		}
		if next == nil {
			next = at.extend(part, filters)
		}
		if last {
			next.op = op
		}
		at.array = at.array || identified
		at = next
	}
	return nil
}

// fits reports whether a node can take one more child: those of an array's elements and those of fields don't mix.
func (n *updateNode) fits(identified bool) bool {
	if len(n.children) == 0 && n.positional == nil {
		return true
	}
	return n.array == identified
}

// step returns the existing child for a part of a path, or nil.
func (n *updateNode) step(part string, position int, path string, filters map[string]*arrayFilter) (*updateNode, error) {
	if part == "$" {
		return n.positional, nil
	}
	name := part
	if isIdentifier(part) {
		name = identifier(part)
		if position == 0 {
			return nil, mongoerr.New(mongoerr.BadValue,
				"Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
		}
		if name != "" {
			filter, ok := filters[name]
			if !ok {
				return nil, mongoerr.New(mongoerr.BadValue, "No array filter found for identifier '%s' in path '%s'", name, path)
			}
			filter.used = true
		}
	}
	for _, c := range n.children {
		if c.name == name {
			return c, nil
		}
	}
	return nil, nil
}

// extend adds an empty child for a part of a path.
func (n *updateNode) extend(part string, filters map[string]*arrayFilter) *updateNode {
	if part == "$" {
		n.positional = newStep(part)
		return n.positional
	}
	c := newStep(part)
	if isIdentifier(part) {
		c = &updateNode{name: identifier(part), index: -1, filter: filters[identifier(part)]}
	}
	n.add(c)
	return c
}

// isIdentifier reports whether a path's part is $[] or $[identifier].
func isIdentifier(part string) bool {
	return len(part) >= 3 && strings.HasPrefix(part, "$[") && strings.HasSuffix(part, "]")
}

// identifier returns what stands in the brackets.
func identifier(part string) string { return part[2 : len(part)-1] }

func pathConflict(path, at string) error {
	return mongoerr.New(mongoerr.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path, at)
}

// resolve returns the tree with every "$" replaced by the index that the filter matched.
func (n *updateNode) resolve(index int, path string) (*updateNode, error) {
	if !n.hasPositional() {
		return n, nil
	}
	if index < 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "The positional operator did not find the match needed from the query.")
	}
	resolved := *n
	resolved.children = make([]*updateNode, 0, len(n.children)+1)
	resolved.positional, resolved.byName = nil, nil
	for _, c := range n.children {
		child, err := c.resolve(index, joinPath(path, c.step0()))
		if err != nil {
			return nil, err
		}
		resolved.children = append(resolved.children, child)
	}
	if n.positional == nil {
		return &resolved, nil
	}
	matched, err := n.positional.resolve(index, joinPath(path, strconv.Itoa(index)))
	if err != nil {
		return nil, err
	}
	return &resolved, resolved.adopt(matched, index, path)
}

// adopt adds the resolved "$" child under its index, merged with a child that names the same index.
func (n *updateNode) adopt(matched *updateNode, index int, path string) error {
	named := *matched
	named.name, named.index = strconv.Itoa(index), index
	named.key = []byte(named.name)
	for i, c := range n.children {
		if c.name != named.name {
			continue
		}
		merged, err := mergeNodes(&named, c, joinPath(path, c.name))
		if err != nil {
			return err
		}
		n.children[i] = merged
		return nil
	}
	n.add(&named)
	return nil
}

// hasPositional reports whether there is a "$" in the tree.
func (n *updateNode) hasPositional() bool {
	return n.positional != nil || slices.ContainsFunc(n.children, (*updateNode).hasPositional)
}

// step0 is the node's part of a path as it was written.
func (n *updateNode) step0() string {
	if n.filter != nil || n.name == "" {
		return "$[" + n.name + "]"
	}
	return n.name
}

// mergeNodes returns a node that does what both do; two operators on one path are a conflict that only shows on a document.
func mergeNodes(a, b *updateNode, path string) (*updateNode, error) {
	if a.op != nil || b.op != nil || a.array != b.array {
		return nil, mongoerr.New(mongoerr.ConflictingUpdateOperators, "Update created a conflict at '%s'", path)
	}
	merged := &updateNode{name: b.name, key: b.key, index: b.index, array: b.array, filter: b.filter}
	merged.children = slices.Clone(a.children)
	for _, c := range b.children {
		i := slices.IndexFunc(merged.children, func(m *updateNode) bool { return m.name == c.name })
		if i < 0 {
			merged.add(c)
			continue
		}
		both, err := mergeNodes(merged.children[i], c, joinPath(path, c.step0()))
		if err != nil {
			return nil, err
		}
		merged.children[i] = both
	}
	return merged, nil
}

func joinPath(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

// leafPath returns the path from the node to its first leaf, for error messages.
func (n *updateNode) leafPath() string {
	path := n.step0()
	for n.op == nil && len(n.children) > 0 {
		n = n.children[0]
		path = joinPath(path, n.step0())
	}
	return path
}
