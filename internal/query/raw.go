package query

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"oxbow/internal/bson"
)

var emptyDocument = bson.Document{5, 0, 0, 0, 0}

// begin appends the room for the length of a document or array; finish closes it.
func begin(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// finish closes the document or array that began at start.
func finish(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// bodyEnd returns the offset of a document's final zero byte.
func bodyEnd(doc []byte) int {
	if len(doc) < 5 {
		return min(4, len(doc))
	}
	return max(4, min(int(int32(binary.LittleEndian.Uint32(doc))), len(doc))-1)
}

// appendHeader appends the type and the key of an element.
func appendHeader(dst []byte, t bson.Type, key []byte) []byte {
	return append(append(append(dst, byte(t)), key...), 0)
}

// appendIndexedHeader appends the type and the key of an array's element.
func appendIndexedHeader(dst []byte, t bson.Type, index int) []byte {
	return append(strconv.AppendInt(append(dst, byte(t)), int64(index), 10), 0)
}

func appendUint64(dst []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(dst, n) }

// wrapValue appends the document {name: v}.
func wrapValue(dst []byte, name string, v bson.Value) []byte {
	start := len(dst)
	dst = append(append(append(begin(dst), byte(v.Type)), name...), 0)
	return finish(append(dst, v.Data...), start)
}

func countElements(array []byte) int {
	n := 0
	for it := bson.Elements(array); it.Next(); {
		n++
	}
	return n
}

func arrayValues(array []byte) []bson.Value {
	var values []bson.Value
	for it := bson.Elements(array); it.Next(); {
		values = append(values, it.Value())
	}
	return values
}

func containsValue(array []byte, v bson.Value) bool {
	for it := bson.Elements(array); it.Next(); {
		if bson.Compare(it.Value(), v) == 0 {
			return true
		}
	}
	return false
}

// sameValue reports whether two values have the same type and bytes.
func sameValue(a, b bson.Value) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) }

// marks is a small set of numbers below the size it was made for.
type marks struct {
	low  uint64
	more []uint64
}

func newMarks(size int) marks {
	if size <= 64 {
		return marks{}
	}
	return marks{more: make([]uint64, (size-1)/64)}
}

func (m *marks) has(i int) bool {
	if i < 64 {
		return m.low&(1<<i) != 0
	}
	return m.more[i/64-1]&(1<<(i%64)) != 0
}

func (m *marks) set(i int) {
	if i < 64 {
		m.low |= 1 << i
		return
	}
	m.more[i/64-1] |= 1 << (i % 64)
}

// linearChildren is how many children of a tree's node are searched one after the other; a map is faster above it.
const linearChildren = 8
