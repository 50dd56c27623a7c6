package engine

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// entries are the keys that one index has for one document: whole keys, prefix and _id included, in order and without repeats. Reused
// from document to document, they don't allocate.
type entries struct {
	buf    []byte
	ends   []int  // where each key ends in buf
	splits []int  // where its fields' keys end
	arrays uint32 // bit i: the path of field i met an array

	sorted  [][]byte // scratch of arrange
	capture *capture // for valueOf
}

func (e *entries) reset() {
	e.buf, e.ends, e.splits, e.arrays = e.buf[:0], e.ends[:0], e.splits[:0], 0
}

func (e *entries) len() int { return len(e.ends) }

// key returns the i-th key.
func (e *entries) key(i int) []byte {
	start := 0
	if i > 0 {
		start = e.ends[i-1]
	}
	return e.buf[start:e.ends[i]:e.ends[i]]
}

// fields returns the i-th key without its _id: what a unique index allows once.
func (e *entries) fields(i int) []byte {
	start := 0
	if i > 0 {
		start = e.ends[i-1]
	}
	return e.buf[start:e.splits[i]:e.splits[i]]
}

// arrange puts the keys in order and takes out repeats.
func (e *entries) arrange() {
	if len(e.ends) < 2 {
		return
	}
	e.sorted = e.sorted[:0]
	old := bytes.Clone(e.buf)
	start := 0
	tails := e.ends[0] - e.splits[0] // the key of the _id, the same in all
	for _, end := range e.ends {
		e.sorted = append(e.sorted, old[start:end])
		start = end
	}
	slices.SortFunc(e.sorted, bytes.Compare)
	e.sorted = slices.CompactFunc(e.sorted, bytes.Equal)
	e.buf, e.ends, e.splits = e.buf[:0], e.ends[:0], e.splits[:0]
	for _, k := range e.sorted {
		e.buf = append(e.buf, k...)
		e.ends = append(e.ends, len(e.buf))
		e.splits = append(e.splits, len(e.buf)-tails)
	}
}

// field is how far one path of an index has been followed in a document.
type field struct {
	v       bson.Value
	rest    []string // parts still to go from v, when v is an array on the way
	array   bool     // v is an array, to be gone through
	missing bool     // the path ended early; v is null
}

// generate puts the keys of ix for doc into e. id is the key of doc's _id. A document outside of a partial or sparse index has none. Arrays
// give a key an element; two of them side by side are CannotIndexParallelArrays
// (https://www.mongodb.com/docs/manual/core/indexes/index-types/index-multikey/).
func (ix *index) generate(e *entries, doc bson.Document, id []byte) error {
	e.reset()
	if ix.partial != nil {
		ok, err := ix.partial.Match(doc)
		if err != nil || !ok {
			return err
		}
	}
	if ix.generateOne(e, doc, id) {
		return nil
	}
	e.reset()
	var fields [maxIndexFields]field
	fs := fields[:len(ix.Keys)]
	for i := range fs {
		fs[i] = follow(doc, ix.Keys[i].Path.Parts())
	}
	if err := ix.expand(e, fs, id); err != nil {
		return err
	}
	e.arrange()
	return nil
}

// generateOne is generate for a document without arrays on the index's paths, and reports whether doc is one.
func (ix *index) generateOne(e *entries, doc bson.Document, id []byte) bool {
	e.buf = append(e.buf, ix.prefix...)
	missing := 0
	for i := range ix.Keys {
		f := follow(doc, ix.Keys[i].Path.Parts())
		if f.array {
			return false
		}
		if f.missing {
			missing++
		}
		e.buf = bson.AppendKey(e.buf, f.v, ix.Keys[i].Desc)
	}
	if ix.Sparse && missing == len(ix.Keys) {
		e.reset()
		return true
	}
	e.splits = append(e.splits, len(e.buf))
	e.buf = append(e.buf, id...)
	e.ends = append(e.ends, len(e.buf))
	return true
}

// follow goes along parts from obj to the value or to the first array on the way.
func follow(obj []byte, parts []string) field {
	for {
		v, ok := bson.Get(obj, parts[0])
		if !ok {
			break
		}
		parts = parts[1:]
		if v.Type == bson.TypeArray {
			return field{v: v, rest: parts, array: true}
		}
		if len(parts) == 0 {
			return field{v: v}
		}
		if v.Type != bson.TypeDocument {
			break
		}
		obj = v.Data
	}
	return field{v: bson.Null, missing: true}
}

// expand emits a key when no field stands at an array, else goes through that array's elements.
func (ix *index) expand(e *entries, fs []field, id []byte) error {
	first := -1
	for i := range fs {
		if !fs[i].array {
			continue
		}
		if first >= 0 && &fs[i].v.Data[0] != &fs[first].v.Data[0] {
			return mongoerr.New(mongoerr.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]",
				arrayName(ix.Keys[i].Path, fs[i].rest), arrayName(ix.Keys[first].Path, fs[first].rest))
		}
		if first < 0 {
			first = i
		}
	}
	if first < 0 {
		ix.emit(e, fs, id)
		return nil
	}
	array := fs[first].v.Data
	for i := range fs {
		if fs[i].array {
			e.arrays |= 1 << i
		}
	}
	empty := true
	it := bson.Elements(array)
	for it.Next() {
		empty = false
		if err := ix.element(e, fs, array, it.Value(), id); err != nil {
			return err
		}
	}
	if empty {
		return ix.element(e, fs, array, bson.Value{}, id)
	}
	return nil
}

// element goes on with one element of the array that fields of fs stand at; Type 0 stands for the empty array's lack of one, which has a
// key of its own below null.
func (ix *index) element(e *entries, fs []field, array []byte, v bson.Value, id []byte) error {
	var next [maxIndexFields]field
	ns := next[:len(fs)]
	copy(ns, fs)
	for i := range ns {
		f := &ns[i]
		if !f.array {
			continue
		}
		if len(f.rest) == 0 {
			*f = field{v: v}
			continue
		}
		part, inside := f.rest[0], false
		if v.Type == bson.TypeDocument {
			_, inside = bson.Get(v.Data, part)
		}
		byIndex := false
		if isIndex(part) {
			_, byIndex = bson.Get(array, part)
		}
		switch {
		case inside && byIndex:
			return mongoerr.New(mongoerr.AmbiguousIndexField,
				"Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s' for array: %s",
				part, arrayName(ix.Keys[i].Path, f.rest))
		case inside:
			*f = follow(v.Data, f.rest)
		case byIndex:
			*f = follow(array, f.rest)
			if len(f.rest) == 0 {
				f.array = false // an array that is named by its place is indexed whole
			}
		default:
			*f = field{v: bson.Null, missing: true}
		}
	}
	return ix.expand(e, ns, id)
}

// emit appends the key of fully followed fields.
func (ix *index) emit(e *entries, fs []field, id []byte) {
	if ix.Sparse && !slices.ContainsFunc(fs, func(f field) bool { return !f.missing }) {
		return
	}
	e.buf = append(e.buf, ix.prefix...)
	for i := range fs {
		e.buf = bson.AppendKey(e.buf, fs[i].v, ix.Keys[i].Desc)
	}
	e.splits = append(e.splits, len(e.buf))
	e.buf = append(e.buf, id...)
	e.ends = append(e.ends, len(e.buf))
	if c := e.capture; c != nil && c.values == nil && bytes.Equal(e.fields(e.len()-1), c.fields) {
		for i := range fs {
			c.values = append(c.values, fs[i].v)
		}
	}
}

// isIndex reports whether a part of a path can name an array's element.
func isIndex(part string) bool {
	for _, c := range []byte(part) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return part != "" && (part[0] != '0' || part == "0")
}

// arrayName returns the name of the array at which a path stands with rest to go.
func arrayName(p bson.Path, rest []string) string {
	parts := p.Parts()
	return parts[len(parts)-len(rest)-1]
}

// valueOf returns the values, as a document of paths, of which doc's entry with the given fields is made: what a duplicate key's error shows.
func (ix *index) valueOf(fields []byte, doc bson.Document) bson.Document {
	c := capture{fields: fields}
	e := entries{capture: &c}
	var all [maxIndexFields]field
	fs := all[:len(ix.Keys)]
	for i := range fs {
		fs[i] = follow(doc, ix.Keys[i].Path.Parts())
	}
	_ = ix.expand(&e, fs, nil) // it went well when the entry was made
	var d []byte
	for i, v := range c.values {
		if v.Type == 0 {
			v.Type = bson.TypeUndefined
		}
		d = bsoncore.AppendValueElement(d, ix.Keys[i].Path.String(), v)
	}
	return bsoncore.BuildDocument(nil, d)
}

// capture keeps the values of the entry with certain fields.
type capture struct {
	fields []byte
	values []bson.Value
}
