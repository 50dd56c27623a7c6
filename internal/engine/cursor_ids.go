package engine

import (
	"bytes"
	"slices"

	"github.com/cespare/xxhash/v2"

	"oxbow/internal/memory"
)

// idSet is a set of _id keys, held as bytes one behind the other.
type idSet struct {
	memory memory.Account
	bytes  []byte
	slots  []uint32 // 1 + offset of a key in bytes, behind its length in four bytes; 0 is free
	count  int
}

// newIDSet returns an empty set, to be closed.
func (x *execution) newIDSet() *idSet {
	return &idSet{memory: x.table.db.options.Memory.Account(memory.Queries)}
}

// close gives the set's memory back; a nil set has none.
func (s *idSet) close() {
	if s != nil {
		s.memory.Close()
	}
}

// maxIDBytes bounds the memory of one set.
const maxIDBytes = 64 << 20

// add puts id in and reports whether it was not there yet. The error is ExceededMemoryLimit.
func (s *idSet) add(id []byte) (bool, error) {
	if 4*s.count >= 3*len(s.slots) {
		if err := s.grow(); err != nil {
			return false, err
		}
	}
	at := s.slot(id)
	if s.slots[at] != 0 {
		return false, nil
	}
	n := len(id)
	if more := 4 + n; cap(s.bytes)-len(s.bytes) < more {
		more = max(more, cap(s.bytes)/4)
		if err := s.memory.Grow(int64(more)); err != nil {
			return false, err
		}
		s.bytes = slices.Grow(s.bytes, more)
	}
	s.slots[at] = uint32(len(s.bytes)) + 1
	s.bytes = append(append(s.bytes, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), id...)
	s.count++
	return true, nil
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

func (s *idSet) grow() error {
	old := s.slots
	n := max(64, 2*len(old))
	if err := s.memory.Grow(int64(4 * n)); err != nil {
		return err
	}
	s.slots = make([]uint32, n)
	for _, slot := range old {
		if slot != 0 {
			s.slots[s.slot(s.key(slot))] = slot
		}
	}
	return s.memory.Grow(-int64(4 * len(old)))
}
