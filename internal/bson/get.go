package bson

import "errors"

var errMalformed = errors.New("malformed BSON")

// Get returns the value of the first element of doc named key (one level, no dots), and whether there is one.
func Get(doc []byte, key string) (Value, bool) {
	it := Elements(doc)
	for it.Next() {
		if string(it.Key()) == key {
			return it.Value(), true
		}
	}
	return Value{}, false
}

// First returns the key and the value of doc's first element; of a command document that is the command's name.
func First(doc []byte) (key string, v Value, ok bool) {
	it := Elements(doc)
	if !it.Next() {
		return "", Value{}, false
	}
	return string(it.Key()), it.Value(), true
}
