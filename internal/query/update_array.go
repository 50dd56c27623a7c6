package query

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// arrayGrowth is what $push and $addToSet share: they make an array where there is none.
type arrayGrowth struct{}

func (arrayGrowth) creates(*applier) (bool, error) { return true, nil }
func (arrayGrowth) blocked() blockage              { return cannotCreate }

// arrayCut is what $pop, $pull and $pullAll share: they do nothing where there is no array, but the path must be one that could be.
type arrayCut struct{}

func (arrayCut) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return dst, bson.TypeNull, kept, nil
}
func (arrayCut) creates(*applier) (bool, error) { return false, nil }
func (arrayCut) blocked() blockage              { return cannotUse }

// push is $push: the values go in at position, then sort and slice apply.
type push struct {
	arrayGrowth
	values   []bson.Value
	position int64 // from the front, from the back where negative; past the end for "at the end"
	sort     *pushSort
	slice    int64 // how many are kept, from the front, from the back where negative
	sliced   bool
}

func (o push) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if old.Type != bson.TypeArray {
		return dst, old.Type, kept, mongoerr.New(mongoerr.BadValue, "The field '%s' must be an array but is of type %s in document {%s}",
			ap.pathText(), bson.TypeName(old.Type), idText(ap.doc))
	}
	if o.sort == nil && !o.sliced {
		if len(o.values) == 0 {
			return dst, old.Type, kept, nil
		}
		if o.position >= maxElements {
			return appendToArray(dst, old.Data, o.values), old.Type, written, nil
		}
	}
	elements := o.arrange(arrayValues(old.Data))
	if o.sort == nil && len(o.values) == 0 && len(elements) == countElements(old.Data) {
		return dst, old.Type, kept, nil
	}
	return appendArray(dst, elements), old.Type, written, nil
}

func (o push) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return appendArray(dst, o.arrange(nil)), bson.TypeArray, written, nil
}

// maxElements is more than an array in a document can have.
const maxElements = bson.MaxInternalSize

// arrange puts the values into the elements, sorts and cuts.
func (o push) arrange(elements []bson.Value) []bson.Value {
	count := int64(len(elements))
	at := min(o.position, count)
	if at < 0 {
		at = max(count+at, 0)
	}
	elements = slices.Insert(elements, int(at), o.values...)
	if o.sort != nil {
		o.sort.sort(elements)
	}
	count = int64(len(elements))
	switch {
	case !o.sliced:
	case o.slice >= 0:
		elements = elements[:min(o.slice, count)]
	case o.slice > -count:
		elements = elements[count+o.slice:]
	}
	return elements
}

// addToSet is $addToSet: the values are distinct.
type addToSet struct {
	arrayGrowth
	values []bson.Value
}

func (o addToSet) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if old.Type != bson.TypeArray {
		return dst, old.Type, kept, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", ap.name(), bson.TypeName(old.Type))
	}
	var few [4]bson.Value
	added := few[:0]
	for _, v := range o.values {
		if !containsValue(old.Data, v) {
			added = append(added, v)
		}
	}
	if len(added) == 0 {
		return dst, old.Type, kept, nil
	}
	return appendToArray(dst, old.Data, added), old.Type, written, nil
}

func (o addToSet) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return appendArray(dst, o.values), bson.TypeArray, written, nil
}

// pop is $pop.
type pop struct {
	arrayCut
	first bool
}

func (o pop) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if old.Type != bson.TypeArray {
		return dst, old.Type, kept, mongoerr.New(mongoerr.TypeMismatch, "Path '%s' contains an element of non-array type '%s'",
			ap.pathText(), bson.TypeName(old.Type))
	}
	gone := 0
	if !o.first {
		gone = countElements(old.Data) - 1
	}
	at := -1
	return cutArray(dst, old, func(bson.Value) (bool, error) {
		at++
		return at == gone, nil
	})
}

// pull is $pull and $pullAll.
type pull struct {
	arrayCut
	name    string
	matches func(*applier, bson.Value) (bool, error)
}

func (o pull) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if old.Type != bson.TypeArray {
		return dst, old.Type, kept, mongoerr.New(mongoerr.BadValue, "Cannot apply %s to a non-array value", o.name)
	}
	return cutArray(dst, old, func(v bson.Value) (bool, error) { return o.matches(ap, v) })
}

// cutArray appends the elements of an array without those that gone reports.
func cutArray(dst []byte, array bson.Value, gone func(bson.Value) (bool, error)) ([]byte, bson.Type, outcome, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	count, cut := 0, false
	it := bson.Elements(array.Data)
	for it.Next() {
		v := it.Value()
		out, err := gone(v)
		if err != nil {
			return dst, array.Type, kept, err
		}
		if out {
			cut = true
			continue
		}
		dst = append(appendIndexedHeader(dst, v.Type, count), v.Data...)
		count++
	}
	if !cut {
		return dst, array.Type, kept, nil
	}
	return finish(dst, start), array.Type, written, nil
}

// appendToArray appends the array with more values at its end; what is there is copied as it is.
func appendToArray(dst []byte, array []byte, values []bson.Value) []byte {
	start := len(dst)
	dst = append(dst, array[:bodyEnd(array)]...)
	count := countElements(array)
	for i, v := range values {
		dst = append(appendIndexedHeader(dst, v.Type, count+i), v.Data...)
	}
	return finish(dst, start)
}

// appendArray appends an array of the values.
func appendArray(dst []byte, values []bson.Value) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, v := range values {
		dst = append(appendIndexedHeader(dst, v.Type, i), v.Data...)
	}
	return finish(dst, start)
}

// pushSort is the $sort of a $push: of whole elements where fields is empty, else by fields of elements that are documents.
type pushSort struct {
	fields []SortKey
	desc   bool
}

func (s *pushSort) sort(elements []bson.Value) {
	slices.SortStableFunc(elements, func(a, b bson.Value) int {
		if len(s.fields) == 0 {
			return directed(bson.Compare(a, b), s.desc)
		}
		for _, f := range s.fields {
			if c := bson.Compare(f.of(a), f.of(b)); c != 0 {
				return directed(c, f.Desc)
			}
		}
		return 0
	})
}

// of returns the value at the key's path in an array's element, null where there is none.
func (k SortKey) of(element bson.Value) bson.Value {
	if element.Type != bson.TypeDocument {
		return bson.Null
	}
	v, ok, _ := k.Path.Lookup(element.Data)
	if !ok {
		return bson.Null
	}
	return v
}
