package query

import (
	"slices"
	"sync"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Projection is a compiled projection: find's, or that of $project, $addFields or $unset. It is immutable and safe for concurrent use.
type Projection struct {
	root       *projectionNode
	mode       projectionMode
	filter     *Filter // whose match the positional "a.$" shows
	positional bool
}

// projectionMode is what a projection does with fields that it does not name.
type projectionMode uint8

const (
	undecided projectionMode = iota
	inclusion                // drops them
	exclusion                // keeps them
	addition                 // keeps them; computed fields take the place of the fields they replace
)

// projectionNode is one step of a projection's tree of paths.
type projectionNode struct {
	name       string
	key        []byte // name as bytes
	kind       projectionKind
	children   []*projectionNode // of a branch, in the specification's order
	byName     map[string]int
	expression *Expression
	slice      sliceRange
	match      *Filter // of an elemMatch
	computed   bool    // a computed field is here or below
	positional bool    // the positional "a.$" is here or below
}

// projectionKind is what a projection does with one path.
type projectionKind uint8

const (
	branch projectionKind = iota
	include
	exclude
	compute
	sliceOf
	elemMatch
)

// child returns the position of the child with the name, or -1.
func (n *projectionNode) child(name []byte) int {
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

// seal completes a node and those below it: look-up tables, and what is known of whole subtrees.
func (n *projectionNode) seal(mode projectionMode) {
	if len(n.children) > linearChildren {
		n.byName = make(map[string]int, len(n.children))
	}
	n.computed = n.kind == compute || n.kind == elemMatch && mode == inclusion
	for i, c := range n.children {
		c.seal(mode)
		if n.byName != nil {
			n.byName[c.name] = i
		}
		n.computed = n.computed || c.computed
		n.positional = n.positional || c.positional
	}
}

// Whole reports whether the projection leaves every document as it is.
func (p *Projection) Whole() bool { return p.mode != inclusion && len(p.root.children) == 0 }

// Fields returns the top-level fields that the projection can need, and false when that is all of them.
func (p *Projection) Fields() ([]string, bool) {
	if p.mode != inclusion || p.positional {
		return nil, false
	}
	var fields []string
	for _, c := range p.root.children {
		if c.kind == exclude {
			continue
		}
		if c.kind != compute {
			fields = append(fields, c.name)
		}
		var some bool
		if fields, some = c.appendReads(fields); !some {
			return nil, false
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields), true
}

// appendReads appends the top-level fields that expressions at n and below it read; false when that is all of them.
func (n *projectionNode) appendReads(fields []string) ([]string, bool) {
	if n.kind == compute {
		reads, some := n.expression.Fields()
		return append(fields, reads...), some
	}
	for _, c := range n.children {
		var some bool
		if fields, some = c.appendReads(fields); !some {
			return nil, false
		}
	}
	return fields, true
}

// touches reports whether the projection can change the value at path; see Update.Touches.
func (p *Projection) touches(path bson.Path) (touches bool, v bson.Value, constant bool) {
	n, parts := p.root, path.Parts()
	for at, part := range parts {
		i := n.child([]byte(part))
		if i < 0 {
			return p.mode == inclusion, v, p.mode == inclusion && len(parts) == 1
		}
		n = n.children[i]
		switch n.kind {
		case branch:
		case include:
			return n.positional, v, false
		case exclude:
			return true, v, at == 0
		case compute:
			// Below the top an array on the way takes the value into each of its elements.
			if v, constant = n.expression.Constant(); constant && at == 0 {
				v, constant = constantAt(v, parts[1:])
			}
			return true, v, constant && at == 0
		default:
			return true, v, false
		}
	}
	return true, v, false
}

// projector is one application of a projection to a document.
type projector struct {
	mode    projectionMode
	doc     bson.Document
	matched int  // the index for the positional "a.$"
	shown   bool // it has been used
	scratch Scratch
}

var projectors = sync.Pool{New: func() any { return new(projector) }}

// Apply appends doc, projected, to dst and returns the extended slice. Field order is MongoDB's: the document's for
// inclusions and exclusions, then computed fields in the order of the specification.
func (p *Projection) Apply(dst []byte, doc bson.Document) ([]byte, error) {
	if p.Whole() {
		return append(dst, doc...), nil
	}
	matched := -1
	if p.positional {
		var err error
		if _, matched, err = p.filter.MatchAt(doc); err != nil {
			return dst, err
		}
	}
	r := projectors.Get().(*projector)
	r.mode, r.doc, r.matched, r.shown = p.mode, doc, matched, false
	out, err := r.document(dst, doc, p.root)
	r.doc = nil
	projectors.Put(r)
	return out, err
}

// document appends doc, projected by n's children. Runs of fields that stay are copied at once.
func (r *projector) document(dst []byte, doc []byte, n *projectionNode) ([]byte, error) {
	start := len(dst)
	dst = begin(dst)
	done := newMarks(len(n.children))
	from, at := 4, 4
	it := bson.Elements(doc)
	left := len(n.children)
	for left > 0 && it.Next() {
		at += len(it.Raw())
		i := n.child(it.Key())
		if i < 0 && r.mode != inclusion {
			continue
		}
		dst = append(dst, doc[from:at-len(it.Raw())]...)
		from = at
		if i < 0 || done.has(i) {
			continue
		}
		done.set(i)
		left--
		var err error
		if dst, err = r.element(dst, &it, n.children[i]); err != nil {
			return dst, err
		}
	}
	if it.Err() != nil {
		return dst, mongoerr.New(mongoerr.InvalidBSON, "the document to project is malformed")
	}
	if r.mode != inclusion {
		end := bodyEnd(doc)
		dst = append(dst, doc[min(from, end):end]...)
	}
	dst, err := r.addComputed(dst, n, done)
	return finish(dst, start), err
}

// element appends what becomes of an element of the document that n names.
func (r *projector) element(dst []byte, it *bson.Iter, n *projectionNode) ([]byte, error) {
	switch {
	case n.kind == include && !n.positional:
		return append(dst, it.Raw()...), nil
	case n.kind == exclude:
		return dst, nil
	case r.mode == inclusion && (n.kind == compute || n.kind == elemMatch):
		return dst, nil // addComputed puts it behind the others
	}
	head := len(dst)
	dst = appendHeader(dst, it.Value().Type, it.Key())
	dst, t, ok, err := r.value(dst, it.Value(), n)
	if err != nil || !ok {
		return dst[:head], err
	}
	dst[head] = byte(t)
	return dst, nil
}

// addComputed appends the computed fields that are not in their places yet.
func (r *projector) addComputed(dst []byte, n *projectionNode, done marks) ([]byte, error) {
	if !n.computed {
		return dst, nil
	}
	for i, c := range n.children {
		behind := r.mode == inclusion && c.kind != branch
		if !c.computed || done.has(i) && !behind {
			continue
		}
		v := bson.Value{}
		if c.kind == elemMatch {
			v, _ = bson.Get(r.doc, c.name)
		}
		head := len(dst)
		out, t, ok, err := r.value(appendHeader(dst, bson.TypeNull, c.key), v, c)
		if err != nil {
			return out, err
		}
		dst = out[:head]
		if ok {
			dst = out
			dst[head] = byte(t)
		}
	}
	return dst, nil
}

// value appends what n makes of the value v, which is of Type 0 where there is none; ok is false where nothing is left.
func (r *projector) value(dst []byte, v bson.Value, n *projectionNode) (out []byte, t bson.Type, ok bool, err error) {
	if n.positional && v.Type == bson.TypeArray && !r.shown {
		return r.matchedElement(dst, v, n)
	}
	switch n.kind {
	case include:
		return append(dst, v.Data...), v.Type, true, nil
	case compute:
		v, err = n.expression.Eval(r.doc, &r.scratch)
		return append(dst, v.Data...), v.Type, err == nil && v.Type != 0, err
	case sliceOf:
		if v.Type != bson.TypeArray {
			return append(dst, v.Data...), v.Type, true, nil
		}
		return n.slice.append(dst, v.Data), v.Type, true, nil
	case elemMatch:
		return r.firstMatch(dst, v, n)
	}
	switch {
	case v.Type == bson.TypeDocument:
		dst, err = r.document(dst, v.Data, n)
		return dst, v.Type, true, err
	case v.Type == bson.TypeArray:
		dst, err = r.array(dst, v.Data, n)
		return dst, v.Type, true, err
	case n.computed:
		dst, err = r.document(dst, emptyDocument, n)
		return dst, bson.TypeDocument, true, err
	}
	return append(dst, v.Data...), v.Type, r.mode != inclusion, nil
}

// array appends an array whose elements n's children project.
func (r *projector) array(dst []byte, array []byte, n *projectionNode) ([]byte, error) {
	start := len(dst)
	dst = begin(dst)
	count := 0
	for it := bson.Elements(array); it.Next(); {
		head := len(dst)
		out, t, ok, err := r.value(appendIndexedHeader(dst, it.Value().Type, count), it.Value(), n)
		if err != nil {
			return out, err
		}
		dst = out[:head]
		if ok {
			dst = out
			dst[head] = byte(t)
			count++
		}
	}
	return finish(dst, start), nil
}

// matchedElement appends an array of the one element that the filter matched, projected.
func (r *projector) matchedElement(dst []byte, array bson.Value, n *projectionNode) ([]byte, bson.Type, bool, error) {
	if r.matched < 0 {
		return dst, array.Type, false, mongoerr.New(mongoerr.PositionalNoMatch, "positional operator '.$' couldn't find a matching element in the array")
	}
	r.shown = true
	start := len(dst)
	dst = begin(dst)
	it := bson.Elements(array.Data)
	for i := 0; it.Next(); i++ {
		if i != r.matched {
			continue
		}
		head := len(dst)
		out, t, ok, err := r.value(appendIndexedHeader(dst, it.Value().Type, 0), it.Value(), n)
		if err != nil {
			return out, array.Type, false, err
		}
		if ok {
			out[head] = byte(t)
			return finish(out, start), array.Type, true, nil
		}
	}
	return dst, array.Type, false, mongoerr.New(mongoerr.PositionalMismatch, "positional operator '.$' element mismatch")
}

// firstMatch appends an array of the first element that an $elemMatch selects, nothing if there is none.
func (r *projector) firstMatch(dst []byte, v bson.Value, n *projectionNode) ([]byte, bson.Type, bool, error) {
	if v.Type != bson.TypeArray {
		return dst, v.Type, false, nil
	}
	ok, index, err := n.match.MatchAt(r.doc)
	if err != nil || !ok {
		return dst, v.Type, false, err
	}
	return sliceRange{skip: int64(index), limit: 1, skips: true}.append(dst, v.Data), v.Type, true, nil
}

// sliceRange is find's $slice.
type sliceRange struct {
	skip  int64 // from the end where negative
	limit int64 // the last ones where negative, and nothing is skipped
	skips bool
}

// append appends the part of the array that is in range.
func (s sliceRange) append(dst []byte, array []byte) []byte {
	count := int64(countElements(array))
	from, many := int64(0), min(s.limit, count)
	switch {
	case s.skips && s.skip < 0:
		from = max(0, count+s.skip)
	case s.skips:
		from = min(s.skip, count)
	case s.limit < 0:
		from, many = max(0, count+s.limit), count
	}
	start := len(dst)
	dst = begin(dst)
	it := bson.Elements(array)
	for i := int64(0); it.Next() && i < from+many; i++ {
		if i >= from {
			dst = append(appendIndexedHeader(dst, it.Value().Type, int(i-from)), it.Value().Data...)
		}
	}
	return finish(dst, start)
}
