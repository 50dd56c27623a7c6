package bson

import (
	"bytes"
	"encoding/binary"
)

// Iter walks the elements of one document or array in order, without allocating:
//
//	it := bson.Elements(doc)
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	err := it.Err()
//
// Key, Value and Raw alias the document's bytes.
type Iter struct {
	doc []byte // behind its length, the final zero byte included

	// Where the current element begins, its key ends and it ends itself, in doc: numbers, since to write a slice costs more while garbage is collected.
	at, keyEnd, end int

	bad bool
}

// Elements returns an iterator before the first element of doc, which may be a Document or an Array.
func Elements(doc []byte) Iter {
	if len(doc) < 5 {
		return Iter{bad: true}
	}
	n := int(int32(binary.LittleEndian.Uint32(doc)))
	if n < 5 || n > len(doc) {
		return Iter{bad: true}
	}
	return Iter{doc: doc[4:n]}
}

// Next moves to the next element and reports whether there is one.
func (it *Iter) Next() bool {
	rest := it.doc[it.end:]
	if it.bad || len(rest) == 0 || rest[0] == 0 {
		return false
	}
	end := keyEnd(rest)
	if end == len(rest) {
		it.bad = true
		return false
	}
	head := end + 1
	size := int(fixedSizes[rest[0]])
	if size < 0 || size > len(rest)-head {
		var ok bool
		if size, ok = valueSize(Type(rest[0]), rest[head:]); !ok {
			it.bad = true
			return false
		}
	}
	it.at, it.keyEnd, it.end = it.end, it.end+end, it.end+head+size
	return true
}

// keyEnd returns the index of the zero byte behind the key of the element that rest begins with, or rest's length where there is none. Most keys are so
// short that looking byte by byte costs half of a call that looks for the byte.
func keyEnd(rest []byte) int {
	end := 1
	for end < len(rest) && rest[end] != 0 {
		if end == shortKey {
			return end + longKeyEnd(rest[end:])
		}
		end++
	}
	return end
}

// shortKey is up to where keys are looked through byte by byte.
const shortKey = 24

// longKeyEnd is the index of the first zero byte, or the length.
func longKeyEnd(rest []byte) int {
	if n := bytes.IndexByte(rest, 0); n >= 0 {
		return n
	}
	return len(rest)
}

// Key returns the current element's key.
func (it *Iter) Key() []byte { return it.doc[it.at+1 : it.keyEnd : it.keyEnd] }

// Value returns the current element's value.
func (it *Iter) Value() Value {
	return Value{Type: Type(it.doc[it.at]), Data: it.doc[it.keyEnd+1 : it.end : it.end]}
}

// Raw returns the current element whole: type, key and value, ready to be appended to a document under construction.
func (it *Iter) Raw() []byte { return it.doc[it.at:it.end:it.end] }

// Err reports malformed bytes met on the way; validated documents never have any.
func (it *Iter) Err() error {
	if it.bad {
		return errMalformed
	}
	return nil
}

// valueSize returns the length in bytes of a value of type t at the start of b, and false when b is too short for it
// or t is no type of BSON.
func valueSize(t Type, b []byte) (int, bool) {
	var n int
	switch t {
	case TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey:
		n = 0
	case TypeBoolean:
		n = 1
	case TypeInt32:
		n = 4
	case TypeDouble, TypeInt64, TypeDateTime, TypeTimestamp:
		n = 8
	case TypeObjectID:
		n = 12
	case TypeDecimal128:
		n = 16
	case TypeString, TypeJavaScript, TypeSymbol:
		return lengthPrefixed(b, 4, 1)
	case TypeBinary:
		return lengthPrefixed(b, 5, 0)
	case TypeDBPointer:
		return lengthPrefixed(b, 16, 1)
	case TypeDocument, TypeArray:
		return lengthPrefixed(b, 0, 5)
	case TypeCodeWithScope:
		return lengthPrefixed(b, 0, 14)
	case TypeRegex:
		p := bytes.IndexByte(b, 0)
		if p < 0 {
			return 0, false
		}
		o := bytes.IndexByte(b[p+1:], 0)
		if o < 0 {
			return 0, false
		}
		n = p + o + 2
	default:
		return 0, false
	}
	return n, n <= len(b)
}

// lengthPrefixed sizes a value that opens with an int32 length: extra bytes stand beside what the length counts, and
// the length itself must be at least least.
func lengthPrefixed(b []byte, extra, least int) (int, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < least || n > len(b) {
		return 0, false
	}
	n += extra
	return n, n <= len(b)
}
