package bson

import (
	"errors"
	"strings"
)

var errMalformed = errors.New("malformed BSON")

// Get returns the value of the first element of doc named key (one level, no dots), and whether there is one.
func Get(doc []byte, key string) (Value, bool) {
	rest := Elements(doc).doc
	for len(rest) > len(key)+1 && rest[0] != 0 {
		t := Type(rest[0])
		found := rest[len(key)+1] == 0 && string(rest[1:len(key)+1]) == key
		head := len(key) + 2
		if !found {
			end := keyEnd(rest)
			if end == len(rest) {
				break
			}
			head = end + 1
		}
		data := rest[head:]
		size := int(fixedSizes[t])
		if size < 0 || size > len(data) {
			var ok bool
			if size, ok = valueSize(t, data); !ok {
				break
			}
		}
		if found && strings.IndexByte(key, 0) < 0 {
			return Value{Type: t, Data: data[:size:size]}, true
		}
		rest = data[size:]
	}
	return Value{}, false
}

// fixedSizes gives the lengths of the values of types that have one; -1 for the others.
var fixedSizes = func() (sizes [256]int8) {
	var room [16]byte
	for t := range sizes {
		sizes[t] = -1
		switch t := Type(t); t {
		case TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey, TypeBoolean, TypeInt32, TypeDouble, TypeInt64, TypeDateTime, TypeTimestamp,
			TypeObjectID, TypeDecimal128:
			n, _ := valueSize(t, room[:])
			sizes[t] = int8(n)
		}
	}
	return sizes
}()

// First returns the key and the value of doc's first element; of a command document that is the command's name.
func First(doc []byte) (key string, v Value, ok bool) {
	it := Elements(doc)
	if !it.Next() {
		return "", Value{}, false
	}
	if known, ok := firstKeys[string(it.Key())]; ok {
		return known, it.Value(), true
	}
	return string(it.Key()), it.Value(), true
}

// firstKeys are the usual first keys of commands and of replies, which cost no allocation.
var firstKeys = func() map[string]string {
	keys := make(map[string]string)
	for _, k := range [...]string{"find", "getMore", "insert", "update", "delete", "findAndModify", "aggregate", "count", "distinct", "hello", "cursor", "n", "ok"} {
		keys[k] = k
	}
	return keys
}()
