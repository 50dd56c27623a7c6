package bson

import (
	"bytes"
	"encoding/binary"
)

// AppendKey appends the order-preserving key of v to dst: for all a and b, bytes.Compare of their keys equals Compare(a, b);
// so numbers of any type that are equal share one key. No key is a proper prefix of another one, so keys can be
// concatenated for compound indexes. With desc, the bytes are inverted and the order is reversed. A Value of Type 0 has a
// key between MinKey's and null's: the place of an empty array in an index or a sort.
//
// The encoding is part of the format on disk: see docs/decisions/0002-key-encoding.md. It can't be decoded back to types; an
// index entry therefore also holds the document's key, and the document its values.
func AppendKey(dst []byte, v Value, desc bool) []byte {
	start := len(dst)
	dst = appendKey(dst, v)
	if desc {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

func appendKey(dst []byte, v Value) []byte {
	class := classes[v.Type]
	if class == leadNumber {
		n, _ := NumberOf(v)
		return n.appendKey(dst)
	}
	if class == leadBoolean && len(v.Data) > 0 && v.Data[0] != 0 {
		return append(dst, leadBoolean+1)
	}
	dst = append(dst, class)
	switch class {
	case leadString, leadCode:
		return appendText(dst, text(v.Data))
	case leadDocument:
		return appendElements(dst, v.Data, true)
	case leadArray:
		return appendElements(dst, v.Data, false)
	case leadBinary:
		return appendBinary(dst, v.Data)
	case leadObjectID:
		var id [12]byte
		copy(id[:], v.Data)
		return append(dst, id[:]...)
	case leadDateTime:
		return binary.BigEndian.AppendUint64(dst, word(v.Data)^1<<63)
	case leadTimestamp:
		return binary.BigEndian.AppendUint64(dst, word(v.Data))
	case leadRegex:
		pattern, options := regexParts(v.Data)
		return appendText(appendText(dst, pattern), options)
	case leadDBPointer:
		return append(appendLength(dst, len(v.Data)), v.Data...)
	case leadCodeWithScope:
		code, scope := scopeParts(v.Data)
		return appendElements(appendText(dst, code), scope, true)
	}
	return dst
}

// Texts end with textEnd; bytes that are not above escape are written as escape and the byte plus one.
const (
	textEnd = 0
	escape  = 1
)

func appendText(dst, s []byte) []byte {
	for {
		i := indexLow(s)
		if i < 0 {
			return append(append(dst, s...), textEnd)
		}
		dst = append(append(dst, s[:i]...), escape, s[i]+1)
		s = s[i+1:]
	}
}

// indexLow returns the position of the first byte that needs escaping, or -1.
func indexLow(s []byte) int {
	i := bytes.IndexByte(s, escape)
	if i < 0 {
		i = len(s)
	}
	if j := bytes.IndexByte(s[:i], 0); j >= 0 {
		return j
	}
	if i == len(s) {
		return -1
	}
	return i
}

// appendElements appends each element (its class and its key, if keys count, then its value's key) and a zero byte, which is below
// every class.
func appendElements(dst, doc []byte, keys bool) []byte {
	it := Elements(doc)
	for it.Next() {
		v := it.Value()
		if keys {
			dst = appendText(append(dst, classes[v.Type]), it.Key())
		}
		dst = appendKey(dst, v)
	}
	return append(dst, 0)
}

// appendBinary appends length, subtype and bytes, which is the order that binary data compares in.
func appendBinary(dst, data []byte) []byte {
	if len(data) < 5 {
		data = []byte{0, 0, 0, 0, 0}
	}
	return append(appendLength(dst, len(data)-5), data[4:]...)
}

// longLength marks a length of four bytes; lengths below it are one byte.
const longLength = 0xff

func appendLength(dst []byte, n int) []byte {
	if n < longLength {
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, longLength), uint32(n))
}
