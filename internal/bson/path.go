package bson

import (
	"strconv"
	"strings"
)

// Path is a dotted field path, split once.
type Path struct {
	text  string
	parts []string
	index []int // for a part that is a decimal number without leading zeros its value, else -1
}

// ParsePath splits a dotted path. The empty text gives one empty part.
func ParsePath(text string) Path {
	if strings.IndexByte(text, '.') < 0 {
		only := &struct { // one allocation for the path that most are
			part  [1]string
			index [1]int
		}{[1]string{text}, [1]int{arrayIndex(text)}}
		return Path{text: text, parts: only.part[:], index: only.index[:]}
	}
	p := Path{text: text, parts: strings.Split(text, ".")}
	p.index = make([]int, len(p.parts))
	for i, part := range p.parts {
		p.index[i] = arrayIndex(part)
	}
	return p
}

// arrayIndex returns the array index that a path's part stands for, or -1.
func arrayIndex(part string) int {
	if part == "" || len(part) > 9 || part[0] == '0' && part != "0" {
		return -1
	}
	for _, c := range []byte(part) {
		if c < '0' || c > '9' {
			return -1
		}
	}
	n, _ := strconv.Atoi(part)
	return n
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// Parts returns the path's components.
func (p Path) Parts() []string { return p.parts }

// Index returns the array index that part i stands for, or -1 where it is no number.
func (p Path) Index(i int) int { return p.index[i] }

// Walk calls visit for each value that the path reaches in doc, as MongoDB's queries see it: where the path meets an array it
// goes through the elements that are documents, and where its next part is a number also into the element of that index, which
// it then takes as it is. An array at the end of the path is visited once, whole, with expanded false; when expand is set, also
// each of its elements, with expanded true, before it. Where a branch ends early visit is called with ok false, once per
// branch: the field is missing there (inside an array only for document elements). Elements of arrays that are no documents are
// passed over. index is the position in the outermost array that the path went through without naming the position, or -1. Walk
// stops when visit returns false, and returns false then. It does not allocate. The zero Path reaches doc itself.
func (p Path) Walk(doc []byte, expand bool, visit func(v Value, ok, expanded bool, index int) bool) bool {
	if len(p.parts) == 0 {
		return visit(Value{Type: TypeDocument, Data: doc}, true, false, -1)
	}
	w := walker{path: p, expand: expand, visit: visit}
	return w.document(doc, 0, -1)
}

// walker is one Walk. Its methods return false once visit has.
type walker struct {
	path   Path
	expand bool
	visit  func(v Value, ok, expanded bool, index int) bool
}

// document follows the path from part i on, through doc.
func (w *walker) document(doc []byte, i, index int) bool {
	for {
		v, ok := Get(doc, w.path.parts[i])
		i++
		switch {
		case !ok:
			return w.visit(Value{}, false, false, index)
		case v.Type == TypeArray:
			return w.array(v, i, index)
		case i == len(w.path.parts):
			return w.visit(v, true, false, index)
		case v.Type != TypeDocument:
			return w.visit(Value{}, false, false, index)
		}
		doc = v.Data
	}
}

// array follows the path from part i on, which may be its end, through the elements of an array.
func (w *walker) array(array Value, i, index int) bool {
	last := i == len(w.path.parts)
	if last && !w.expand {
		return w.visit(array, true, false, index)
	}
	it := Elements(array.Data)
	for n := 0; it.Next(); n++ {
		v, at := it.Value(), index
		if at < 0 {
			at = n
		}
		switch {
		case last:
			if !w.visit(v, true, true, at) {
				return false
			}
			continue
		case v.Type == TypeDocument && !w.document(v.Data, i, at):
			return false
		}
		if n == w.path.index[i] && !w.element(v, i+1, index) {
			return false
		}
	}
	return !last || w.visit(array, true, false, index)
}

// element follows the path from part i on, which may be its end, through an array element that the path names by its index.
func (w *walker) element(v Value, i, index int) bool {
	switch {
	case i == len(w.path.parts):
		return w.visit(v, true, false, index)
	case v.Type == TypeDocument:
		return w.document(v.Data, i, index)
	case v.Type == TypeArray:
		return w.array(v, i, index)
	default:
		return true
	}
}

// Lookup follows the path through documents only, as a shard key does: ok is false where a part is missing;
// array is true where a part of the path or its value is an array; v is then that array.
func (p Path) Lookup(doc []byte) (v Value, ok, array bool) {
	for i, part := range p.parts {
		v, ok = Get(doc, part)
		switch {
		case !ok:
			return Value{}, false, false
		case v.Type == TypeArray:
			return v, i == len(p.parts)-1, true
		case i < len(p.parts)-1 && v.Type != TypeDocument:
			return Value{}, false, false
		}
		doc = v.Data
	}
	return v, ok, false
}
