package bson

import (
	"encoding/binary"
	"fmt"
)

// MaxDepth is the deepest nesting that MongoDB takes (https://www.mongodb.com/docs/manual/reference/limits/).
const MaxDepth = 100

// MaxDocumentSize is the largest document a user can store, in bytes; MaxInternalSize allows for the command around it.
const (
	MaxDocumentSize = 16 << 20
	MaxInternalSize = MaxDocumentSize + 16<<10
)

// Validate checks that doc is exactly one well-formed document: lengths that add up, known types, terminated keys and
// strings, booleans of 0 or 1, code with scope that fits, nesting at most maxDepth (a document without documents in it is
// nested once). Strings need not be UTF-8, as in MongoDB. It does not look at key names or array indexes. It allocates
// nothing unless it returns an error, which names the offset.
func Validate(doc []byte, maxDepth int) error {
	c := checker{all: doc}
	c.document(doc, maxDepth)
	if c.fault == "" {
		return nil
	}
	return fmt.Errorf("%w: %s at offset %d", errMalformed, c.fault, c.offset)
}

// checker remembers the first fault found in a document.
type checker struct {
	all    []byte
	fault  string
	offset int
}

// fail notes a fault at the start of at, a part of the document that reaches to its end in memory.
func (c *checker) fail(fault string, at []byte) bool {
	c.fault, c.offset = fault, cap(c.all)-cap(at)
	return false
}

// document checks one document or array, which fills doc.
func (c *checker) document(doc []byte, depth int) bool {
	if len(doc) < 5 || int(int32(binary.LittleEndian.Uint32(doc))) != len(doc) {
		return c.fail("document of a wrong length", doc)
	}
	if depth <= 0 {
		return c.fail("nesting too deep", doc)
	}
	rest := doc[4:]
	for len(rest) > 1 && rest[0] != 0 {
		end := keyEnd(rest)
		if end == len(rest) {
			return c.fail("key without an end", rest)
		}
		data := rest[end+1:]
		t := Type(rest[0])
		if size := int(fixedSizes[t]); size >= 0 && size <= len(data) && t != TypeBoolean {
			rest = data[size:] // nothing in it can be wrong
			continue
		}
		size, ok := valueSize(t, data)
		if !ok {
			return c.fail("value of an unknown type or a wrong length", rest)
		}
		if !c.value(t, data[:size], depth) {
			return false
		}
		rest = data[size:]
	}
	if len(rest) != 1 || rest[0] != 0 {
		return c.fail("document without an end", rest)
	}
	return true
}

// value checks what a value's size does not say.
func (c *checker) value(t Type, data []byte, depth int) bool {
	switch t {
	case TypeBoolean:
		if data[0] > 1 {
			return c.fail("boolean that is neither 0 nor 1", data)
		}
	case TypeString, TypeJavaScript, TypeSymbol:
		if data[len(data)-1] != 0 {
			return c.fail("string without an end", data)
		}
	case TypeDBPointer:
		if data[len(data)-13] != 0 {
			return c.fail("string without an end", data)
		}
	case TypeDocument, TypeArray:
		return c.document(data, depth-1)
	case TypeCodeWithScope:
		return c.scope(data, depth)
	}
	return true
}

// scope checks code with scope: its length, a string and a document that fill it.
func (c *checker) scope(data []byte, depth int) bool {
	size, ok := valueSize(TypeString, data[4:])
	if !ok || !c.value(TypeString, data[4:4+size], depth) {
		return c.fail("code with scope that does not fit", data)
	}
	return c.document(data[4+size:], depth-1)
}
