package route

import (
	"github.com/cespare/xxhash/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Slot returns the slot of a value. A number that an int64 can hold, of any numeric type, goes to its remainder, which is never negative
// (-1 of 64 slots goes to 63); every other value to the remainder of xxh64 of its key, so that values that compare equal
// share a slot. A missing value (Type 0) and undefined hash as null. An array is TypeMismatch.
func (h *Hash) Slot(v bson.Value) (int, error) {
	if v.Type == bson.TypeArray {
		return 0, mongoerr.New(mongoerr.TypeMismatch, "the hash field '%s' must not hold an array", h.Field)
	}
	return h.slot(v), nil
}

func (h *Hash) slot(v bson.Value) int {
	if n, ok := bson.NumberOf(v); ok {
		if i, ok := n.Int64(); ok {
			return int(floorMod(i, int64(h.Count)))
		}
	}
	if v.Type == 0 || v.Type == bson.TypeUndefined {
		v = bson.Null
	}
	var buf [128]byte
	return int(xxhash.Sum64(bson.AppendKey(buf[:0], v, false)) % uint64(h.Count))
}

// slotOf returns the slot of a document.
func (h *Hash) slotOf(doc bson.Document) (int, error) {
	v, ok, array := h.Field.Lookup(doc)
	if array {
		return 0, mongoerr.New(mongoerr.TypeMismatch, "the hash field '%s' must not hold an array or lie inside one", h.Field)
	}
	if !ok {
		v = bson.Null
	}
	return h.slot(v), nil
}
