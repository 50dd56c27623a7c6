package bson

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// Compare orders two values as MongoDB does: by type class first, then within the class
// (https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/). The four numeric types compare by exact
// numeric value, NaN below every number; strings and symbols by bytes; binary data by length, subtype and bytes; documents
// element by element: type class, then key, then value; arrays element by element as documents, without the keys. Undefined
// counts as null; Type 0 (missing) stands between MinKey and null. The result is -1, 0 or 1.
//
// It is the order of two whole values. Sorting documents by a path takes the least or greatest array element first:
// see query.Sort.
func Compare(a, b Value) int {
	class := classes[a.Type]
	if c := cmp.Compare(class, classes[b.Type]); c != 0 {
		return c
	}
	switch class {
	case leadNumber:
		return compareNumbers(a, b)
	case leadString, leadCode:
		return bytes.Compare(text(a.Data), text(b.Data))
	case leadDocument:
		return compareElements(a.Data, b.Data, true)
	case leadArray:
		return compareElements(a.Data, b.Data, false)
	case leadBinary:
		return compareBinaries(a.Data, b.Data)
	case leadObjectID, leadBoolean:
		return bytes.Compare(a.Data, b.Data)
	case leadDateTime:
		return cmp.Compare(int64(word(a.Data)), int64(word(b.Data)))
	case leadTimestamp:
		return cmp.Compare(word(a.Data), word(b.Data))
	case leadRegex:
		return compareRegexes(a.Data, b.Data)
	case leadDBPointer:
		if c := cmp.Compare(len(a.Data), len(b.Data)); c != 0 {
			return c
		}
		return bytes.Compare(a.Data, b.Data)
	case leadCodeWithScope:
		return compareScopes(a.Data, b.Data)
	}
	return 0
}

// Equal reports whether Compare gives 0.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }

// compareElements orders two documents, or two arrays, whose keys don't count.
func compareElements(a, b []byte, keys bool) int {
	x, y := Elements(a), Elements(b)
	for {
		more, other := x.Next(), y.Next()
		switch {
		case !more && !other:
			return 0
		case !more:
			return -1
		case !other:
			return 1
		}
		v, w := x.Value(), y.Value()
		if c := cmp.Compare(classes[v.Type], classes[w.Type]); c != 0 {
			return c
		}
		if keys {
			if c := bytes.Compare(x.Key(), y.Key()); c != 0 {
				return c
			}
		}
		if c := Compare(v, w); c != 0 {
			return c
		}
	}
}

func compareBinaries(a, b []byte) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 || len(a) < 5 {
		return c
	}
	return bytes.Compare(a[4:], b[4:])
}

func compareRegexes(a, b []byte) int {
	ap, ao := regexParts(a)
	bp, bo := regexParts(b)
	if c := bytes.Compare(ap, bp); c != 0 {
		return c
	}
	return bytes.Compare(ao, bo)
}

func compareScopes(a, b []byte) int {
	at, as := scopeParts(a)
	bt, bs := scopeParts(b)
	if c := bytes.Compare(at, bt); c != 0 {
		return c
	}
	return compareElements(as, bs, true)
}

// text returns the bytes of a string value without its length and its final zero byte.
func text(data []byte) []byte {
	if len(data) < 5 {
		return nil
	}
	return data[4 : len(data)-1]
}

// word returns the first eight bytes of a value as a number, or 0.
func word(data []byte) uint64 {
	if len(data) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(data)
}

// regexParts splits a regular expression into pattern and options.
func regexParts(data []byte) (pattern, options []byte) {
	p, rest, _ := bytes.Cut(data, []byte{0})
	o, _, _ := bytes.Cut(rest, []byte{0})
	return p, o
}

// scopeParts splits code with scope into the code's text and the scope document.
func scopeParts(data []byte) (code, scope []byte) {
	if len(data) < 8 {
		return nil, nil
	}
	size, ok := valueSize(TypeString, data[4:])
	if !ok {
		return nil, nil
	}
	return text(data[4 : 4+size]), data[4+size:]
}
