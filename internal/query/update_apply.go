package query

import (
	"slices"
	"strconv"
	"sync"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// maxPadding is how many nulls an update adds to an array to reach an index (MongoDB's kMaxPaddingAllowed).
const maxPadding = 1_500_000

// applier is the state of one application of an update to one document.
type applier struct {
	doc     bson.Document // before the update
	insert  bool          // an upsert's document is being made
	path    [][]byte      // the names from the root to where the applier stands
	base    int           // where the updated document begins in dst
	arrays  int           // how many of them are array indexes
	direct  bool          // the last of them is
	key     []byte        // memory for an array index as text
	wrapped []byte        // memory for an array element as a document
}

var appliers = sync.Pool{New: func() any { return new(applier) }}

// outcome is what an operator did to a field.
type outcome uint8

const (
	kept    outcome = iota // left as it is; what the operator appended is dropped
	written                // the new value is appended
	removed
)

// fieldOperator is the leaf of an update's tree: what is done to one field.
type fieldOperator interface {
	// change appends the value that replaces old.
	change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error)
	// create appends the value of a field that is missing; outcome kept adds nothing.
	create(ap *applier, dst []byte) ([]byte, bson.Type, outcome, error)
	// creates reports whether create would add the field.
	creates(ap *applier) (bool, error)
	// blocked says what it means that the path ends at a value that can't hold the rest of it.
	blocked() blockage
}

// blockage is what an operator makes of a path that leads through a value that is no document.
type blockage uint8

const (
	ignored      blockage = iota // nothing happens
	cannotCreate                 // the field can't be created there
	cannotUse                    // the path can't be followed there
)

// applyTree appends doc, changed by the tree under root, to dst.
func applyTree(dst []byte, doc bson.Document, root *updateNode, insert bool) ([]byte, bool, error) {
	ap := appliers.Get().(*applier)
	ap.doc, ap.insert, ap.path, ap.arrays, ap.base = doc, insert, ap.path[:0], 0, len(dst)
	out, changed, err := ap.document(dst, doc, root)
	clear(ap.path[:cap(ap.path)])
	ap.doc = nil
	appliers.Put(ap)
	return out, changed, err
}

// document appends doc, changed by the children of n. Runs of unchanged elements are copied at once.
func (ap *applier) document(dst []byte, doc []byte, n *updateNode) ([]byte, bool, error) {
	start := len(dst)
	dst = begin(dst)
	changed := false
	done := newMarks(len(n.children))
	end := bodyEnd(doc)
	from, at := 4, 4 // what is copied next begins at from; at is the current element
	it := bson.Elements(doc)
	for left := len(n.children); left > 0 && it.Next(); {
		raw := it.Raw()
		at += len(raw)
		i := n.child(it.Key())
		if i < 0 || done.has(i) {
			continue
		}
		done.set(i)
		left--
		dst = append(dst, doc[from:at-len(raw)]...)
		mark := len(dst)
		var what outcome
		var err error
		ap.direct = false
		if dst, what, err = ap.element(dst, it.Key(), it.Value(), n.children[i]); err != nil {
			return dst, false, err
		}
		from = at
		if what == kept {
			dst, from = dst[:mark], at-len(raw)
			continue
		}
		if err := ap.guardRoot(n.children[i], true, what); err != nil {
			return dst, false, err
		}
		changed = true
	}
	if it.Err() != nil {
		return dst, false, mongoerr.New(mongoerr.InvalidBSON, "the document to update is malformed")
	}
	dst = append(dst, doc[min(from, end):end]...)
	for i, child := range n.children {
		if done.has(i) {
			continue
		}
		var created bool
		var err error
		if dst, created, err = ap.missing(dst, child.key, child); err != nil {
			return dst, false, err
		}
		if !created {
			continue
		}
		if err := ap.guardRoot(child, false, written); err != nil {
			return dst, false, err
		}
		changed = true
	}
	return finish(dst, start), changed, nil
}

// guardRoot refuses what may not be written at the top of a document: a change of _id, and names with a $.
func (ap *applier) guardRoot(n *updateNode, existed bool, what outcome) error {
	if len(ap.path) > 0 {
		return nil
	}
	if n.name == "_id" && existed {
		if _, unset := n.op.(renameSource); unset {
			return mongoerr.New(mongoerr.ImmutableField, "Unsetting the path '_id' using $rename would modify the immutable field '_id'")
		}
		return mongoerr.New(mongoerr.ImmutableField, "Performing an update on the path '%s' would modify the immutable field '_id'", n.leafPath())
	}
	if n.name[0] == '$' && what == written && !ap.insert {
		return dollarField(n.name)
	}
	return nil
}

func dollarField(name string) error {
	return mongoerr.New(mongoerr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of "+
		"an update's replacement document. Consider using an aggregation pipeline with $replaceWith.", name, name)
}

// element appends the element key: v, changed by n.
func (ap *applier) element(dst []byte, key []byte, v bson.Value, n *updateNode) ([]byte, outcome, error) {
	ap.path = append(ap.path, key)
	head := len(dst)
	dst = appendHeader(dst, v.Type, key)
	dst, t, what, err := ap.value(dst, v, n)
	if what == written {
		dst[head] = byte(t)
	} else {
		dst = dst[:head]
	}
	ap.path = ap.path[:len(ap.path)-1]
	return dst, what, err
}

// value appends the value v, changed by n.
func (ap *applier) value(dst []byte, v bson.Value, n *updateNode) ([]byte, bson.Type, outcome, error) {
	if n.op != nil {
		return n.op.change(ap, dst, v)
	}
	var changed bool
	var err error
	switch {
	case n.array && v.Type != bson.TypeArray:
		return dst, v.Type, kept, mongoerr.New(mongoerr.BadValue, "Cannot apply array updates to non-array element %s",
			elementText(ap.name(), v))
	case v.Type == bson.TypeArray:
		ap.arrays++
		if n.array {
			dst, changed, err = ap.selected(dst, v.Data, n)
		} else {
			dst, changed, err = ap.indexed(dst, v, n)
		}
		ap.arrays--
	case v.Type == bson.TypeDocument:
		dst, changed, err = ap.document(dst, v.Data, n)
	default:
		err = ap.obstruct(v, n)
	}
	if changed {
		return dst, v.Type, written, err
	}
	return dst, v.Type, kept, err
}

// indexed appends an array, changed at the indexes that n's children name.
func (ap *applier) indexed(dst []byte, v bson.Value, n *updateNode) ([]byte, bool, error) {
	children, err := ap.byIndex(v, n)
	if err != nil {
		return dst, false, err
	}
	start := len(dst)
	dst = begin(dst)
	changed, count := false, 0
	for it := bson.Elements(v.Data); it.Next(); count++ {
		if len(children) == 0 || children[0].index != count {
			dst = append(dst, it.Raw()...)
			continue
		}
		var what outcome
		ap.direct = true
		if dst, what, err = ap.element(dst, it.Key(), it.Value(), children[0]); err != nil {
			return dst, false, err
		}
		if what == kept {
			dst = append(dst, it.Raw()...)
		}
		changed = changed || what != kept
		children = children[1:]
	}
	for _, c := range children {
		var created bool
		if dst, created, err = ap.beyond(dst, count, c); err != nil {
			return dst, false, err
		}
		if created {
			changed, count = true, c.index+1
		}
	}
	return finish(dst, start), changed, nil
}

// byIndex returns the children of n that stand for elements of the array v, in the order of their indexes; it says what it means that others
// are looked for in an array.
func (ap *applier) byIndex(v bson.Value, n *updateNode) ([]*updateNode, error) {
	indexes := 0
	for i, c := range n.children {
		if c.index < 0 {
			if err := ap.obstructChild(v, c); err != nil {
				return nil, err
			}
			continue
		}
		if i > 0 && n.children[i-1].index == c.index {
			return nil, mongoerr.New(mongoerr.ConflictingUpdateOperators, "Update created a conflict at '%s'", joinPath(ap.pathText(), c.name))
		}
		indexes = i + 1
	}
	return n.children[:indexes], nil
}

// beyond creates the element c behind the count elements of an array, with nulls between.
func (ap *applier) beyond(dst []byte, count int, c *updateNode) ([]byte, bool, error) {
	creates, err := c.creates(ap)
	if err != nil || !creates {
		return dst, false, err
	}
	if c.index-count > maxPadding {
		return dst, false, mongoerr.New(mongoerr.CannotBackfillArray, "can't backfill more than %d elements", maxPadding)
	}
	dst = slices.Grow(dst, (c.index-count)*len("N1000000."))
	for ; count < c.index; count++ {
		dst = appendIndexedHeader(dst, bson.TypeNull, count)
	}
	// Several paths may pad: what none of them could store is not built any further.
	if len(dst)-ap.base > bson.MaxInternalSize {
		return dst, false, updateTooLarge()
	}
	ap.key = strconv.AppendInt(ap.key[:0], int64(c.index), 10)
	return ap.missing(dst, ap.key, c)
}

// selected appends an array, changed in the elements that the children's array filters select.
func (ap *applier) selected(dst []byte, array []byte, n *updateNode) ([]byte, bool, error) {
	start := len(dst)
	dst = begin(dst)
	changed := false
	it := bson.Elements(array)
	for it.Next() {
		node, err := ap.selectors(n, it.Key(), it.Value())
		if err != nil {
			return dst, false, err
		}
		if node == nil {
			dst = append(dst, it.Raw()...)
			continue
		}
		var what outcome
		ap.direct = true
		if dst, what, err = ap.element(dst, it.Key(), it.Value(), node); err != nil {
			return dst, false, err
		}
		if what == kept {
			dst = append(dst, it.Raw()...)
		}
		changed = changed || what != kept
	}
	return finish(dst, start), changed, nil
}

// selectors returns the child that applies to an array element, several ones merged, or nil.
func (ap *applier) selectors(n *updateNode, key []byte, v bson.Value) (*updateNode, error) {
	var node *updateNode
	for _, c := range n.children {
		if c.filter != nil {
			ok, err := c.filter.selects(ap, v)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		if node == nil {
			node = c
			continue
		}
		merged, err := mergeNodes(node, c, joinPath(ap.pathText(), string(key)))
		if err != nil {
			return nil, err
		}
		node = merged
	}
	return node, nil
}

// missing appends the element that n makes of a field that isn't there.
func (ap *applier) missing(dst []byte, key []byte, n *updateNode) ([]byte, bool, error) {
	ap.path = append(ap.path, key)
	defer func() { ap.path = ap.path[:len(ap.path)-1] }()
	if n.array {
		return dst, false, ap.missingArray(n)
	}
	head := len(dst)
	dst = appendHeader(dst, bson.TypeDocument, key)
	if n.op != nil {
		out, t, what, err := n.op.create(ap, dst)
		if what != written {
			return out[:head], false, err
		}
		out[head] = byte(t)
		return out, true, err
	}
	start := len(dst)
	dst = begin(dst)
	any := false
	for _, c := range n.children {
		var created bool
		var err error
		if dst, created, err = ap.missing(dst, c.key, c); err != nil {
			return dst, false, err
		}
		any = any || created
	}
	if !any {
		return dst[:head], false, nil
	}
	return finish(dst, start), true, nil
}

func (ap *applier) missingArray(n *updateNode) error {
	return mongoerr.New(mongoerr.BadValue, "The path '%s' must exist in the document in order to apply array updates.", ap.pathText())
}

// creates reports whether a node makes a field that is missing.
func (n *updateNode) creates(ap *applier) (bool, error) {
	if n.array {
		return true, nil // missing refuses it
	}
	if n.op != nil {
		return n.op.creates(ap)
	}
	for _, c := range n.children {
		if ok, err := c.creates(ap); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// obstruct says what it means that n's children are looked for in v, which is no document.
func (ap *applier) obstruct(v bson.Value, n *updateNode) error {
	for _, c := range n.children {
		if err := ap.obstructChild(v, c); err != nil {
			return err
		}
	}
	return nil
}

func (ap *applier) obstructChild(v bson.Value, c *updateNode) error {
	return ap.obstructLeaf(v, c, c, c.name)
}

// obstructLeaf walks from first, the child that v can't have, to the leaves below it; rest is the path from first to n.
func (ap *applier) obstructLeaf(v bson.Value, first, n *updateNode, rest string) error {
	if n.array {
		return mongoerr.New(mongoerr.BadValue, "The path '%s' must exist in the document in order to apply array updates.",
			joinPath(ap.pathText(), rest))
	}
	if n.op == nil {
		for _, c := range n.children {
			if err := ap.obstructLeaf(v, first, c, joinPath(rest, c.name)); err != nil {
				return err
			}
		}
		return nil
	}
	switch n.op.blocked() {
	case cannotUse:
		return mongoerr.New(mongoerr.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s})",
			first.name, joinPath(ap.pathText(), rest), elementText(ap.name(), v))
	case cannotCreate:
		creates, err := n.op.creates(ap)
		if err != nil || !creates {
			return err
		}
		return mongoerr.New(mongoerr.PathNotViable, "Cannot create field '%s' in element {%s}", first.name, elementText(ap.name(), v))
	}
	return nil
}

// name is the name of the element that the applier stands at.
func (ap *applier) name() string {
	if len(ap.path) == 0 {
		return ""
	}
	return string(ap.path[len(ap.path)-1])
}

// pathText is the dotted path to where the applier stands.
func (ap *applier) pathText() string {
	text := ""
	for _, part := range ap.path {
		text = joinPath(text, string(part))
	}
	return text
}
