package engine

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// idSet is a set of _id keys, held as bytes one behind the other.
type idSet struct {
	bytes []byte
	slots []uint32 // 1 + offset of a key in bytes, behind its length in four bytes; 0 is free
	count int
}

// maxIDBytes bounds the memory of one set.
const maxIDBytes = 64 << 20

// add puts id in and reports whether it was not there yet.
func (s *idSet) add(id []byte) bool {
	if 4*s.count >= 3*len(s.slots) {
		s.grow()
	}
	at := s.slot(id)
	if s.slots[at] != 0 {
		return false
	}
	n := len(id)
	s.slots[at] = uint32(len(s.bytes)) + 1
	s.bytes = append(append(s.bytes, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), id...)
	s.count++
	return true
}

// full reports whether the set may not grow any more.
func (s *idSet) full() bool { return len(s.bytes)+4*len(s.slots) > maxIDBytes }

// slot returns where id is or belongs.
func (s *idSet) slot(id []byte) int {
	mask := len(s.slots) - 1
	for at := int(xxhash.Sum64(id)) & mask; ; at = (at + 1) & mask {
		if s.slots[at] == 0 || bytes.Equal(s.key(s.slots[at]), id) {
			return at
		}
	}
}

func (s *idSet) key(slot uint32) []byte {
	b := s.bytes[slot-1:]
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
	return b[4 : 4+n]
}

func (s *idSet) grow() {
	old := s.slots
	s.slots = make([]uint32, max(64, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			s.slots[s.slot(s.key(slot))] = slot
		}
	}
}
