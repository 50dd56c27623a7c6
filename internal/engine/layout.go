package engine

import (
	"encoding/binary"
	"fmt"

	"oxbow/internal/bson"
)

// The first byte of every key says what it holds. The layout is fixed by docs/decisions/0001-on-disk-format.md.
const (
	kindStore    = 0x01 // the store's own figures
	kindRegistry = 0x02 // one record a table: kind, table
	kindRetry    = 0x03 // records of retryable writes: kind, 16 bytes of session, uint32 slot
	kindData     = 0x10 // everything of a table: kind, table, part, …
)

// The parts of a table. An index has a number of its own between these two, never given twice within the table.
const (
	partDocuments = 0x0000 // documents: … key of the _id
	partArrays    = 0xfffe // which fields of which indexes have met arrays: … uint16 of index, byte of field
	partCounters  = 0xffff // the table's counters: nothing follows
)

// Lengths of the fixed heads of keys.
const (
	tablePrefixLen  = 1 + 4
	partPrefixLen   = tablePrefixLen + 2
	sessionLen      = 16
	retryPrefixLen  = 1 + sessionLen
	maxIndexNumber  = partArrays - 1
	maxIndexFields  = 32 // https://www.mongodb.com/docs/manual/reference/limits/
	maxTableIndexes = 64 // the same page; _id_ is one of them
)

// appendTablePrefix appends the prefix of all that belongs to a table.
func appendTablePrefix(dst []byte, table uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, kindData), table)
}

func appendPartPrefix(dst []byte, table uint32, part uint16) []byte {
	return binary.BigEndian.AppendUint16(appendTablePrefix(dst, table), part)
}

// appendDocumentPrefix appends the prefix of a table's documents; the key of the _id (bson.AppendKey, ascending) follows.
func appendDocumentPrefix(dst []byte, table uint32) []byte {
	return appendPartPrefix(dst, table, partDocuments)
}

// appendDocumentKey appends the whole key of the document with an _id.
func appendDocumentKey(dst []byte, table uint32, id bson.Value) []byte {
	return bson.AppendKey(appendDocumentPrefix(dst, table), id, false)
}

// idKey returns the key of the _id within a document's key, as it also ends the key of each of its index entries.
func idKey(documentKey []byte) []byte { return documentKey[partPrefixLen:] }

// appendIndexPrefix appends the prefix of an index's entries: the number of fields and a bit a field that runs downwards are part of
// it, so that a key can be split without the registry. The fields' keys follow, then the key of the _id.
func appendIndexPrefix(dst []byte, table uint32, number uint16, keys []IndexKey) []byte {
	dst = append(appendPartPrefix(dst, table, number), byte(len(keys)))
	for i := 0; i < len(keys); i += 8 {
		var mask byte
		for j, k := range keys[i:min(i+8, len(keys))] {
			if k.Desc {
				mask |= 1 << j
			}
		}
		dst = append(dst, mask)
	}
	return dst
}

// splitEntry returns where the fields' keys of an index entry end and the key of the _id begins, or len(key) when the key is not a whole
// entry, as bounds are not.
func splitEntry(key []byte) int {
	if len(key) <= partPrefixLen {
		return len(key)
	}
	fields := int(key[partPrefixLen])
	masks := key[partPrefixLen+1:]
	at := partPrefixLen + 1 + (fields+7)/8
	if at > len(key) {
		return len(key)
	}
	for i := range fields {
		n := bson.KeyLen(key[at:], masks[i/8]&(1<<(i%8)) != 0)
		if n == 0 {
			return len(key)
		}
		at += n
	}
	return at
}

// appendCounterKey appends the key of a table's counters.
func appendCounterKey(dst []byte, table uint32) []byte {
	return appendPartPrefix(dst, table, partCounters)
}

// appendArraysKey appends the key that says that a field of an index has met an array.
func appendArraysKey(dst []byte, table uint32, number uint16, field int) []byte {
	return append(binary.BigEndian.AppendUint16(appendPartPrefix(dst, table, partArrays), number), byte(field))
}

func readArraysKey(key []byte) (number uint16, field int, ok bool) {
	if len(key) != partPrefixLen+3 || key[partPrefixLen+2] >= maxIndexFields {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(key[partPrefixLen:]), int(key[partPrefixLen+2]), true
}

func readUint32(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, fmt.Errorf("read number: %d bytes instead of 4", len(b))
	}
	return binary.BigEndian.Uint32(b), nil
}

func appendRegistryKey(dst []byte, table uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, kindRegistry), table)
}

func appendRetryKey(dst []byte, session [sessionLen]byte, slot uint32) []byte {
	dst = append(append(dst, kindRetry), session[:]...)
	return binary.BigEndian.AppendUint32(dst, slot)
}

// appendPrefixEnd appends the least key above all keys with the prefix; the prefix may not be all 0xff.
func appendPrefixEnd(dst, prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			at := len(dst)
			dst = append(dst, prefix[:n]...)
			dst[at+n-1]++
			return dst
		}
	}
	return append(dst, 0xff)
}
