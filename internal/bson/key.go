package bson

// AppendKey appends the order-preserving key of v to dst: for all a and b, bytes.Compare of their keys equals Compare(a, b);
// so numbers of any type that are equal share one key. No key is a proper prefix of another one, so keys can be
// concatenated for compound indexes. With desc, the bytes are inverted and the order is reversed.
//
// The encoding is part of the format on disk: see docs/decisions. It can't be decoded back to types; an index entry
// therefore also holds the document's key, and the document its values.
func AppendKey(dst []byte, v Value, desc bool) []byte { panic("unbuilt") }

// KeyLen returns the length of the key at the start of b, as AppendKey wrote it with desc, or 0 if there is none.
func KeyLen(b []byte, desc bool) int { panic("unbuilt") }
