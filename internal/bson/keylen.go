package bson

import (
	"bytes"
	"encoding/binary"
)

// maxKeyDepth bounds the nesting of keys that KeyLen follows; documents are nested far less (MaxDepth).
const maxKeyDepth = 1000

// KeyLen returns the length of the key at the start of b, as AppendKey wrote it with desc, or 0 if there is none.
func KeyLen(b []byte, desc bool) int {
	r := keyReader{rest: b}
	if desc {
		r.mask = 0xff
	}
	if !r.value(maxKeyDepth) {
		return 0
	}
	return len(b) - len(r.rest)
}

// keyReader passes over keys. Its methods return false where the bytes are no key.
type keyReader struct {
	rest []byte
	mask byte // 0xff while the bytes are inverted
}

func (r *keyReader) value(depth int) bool {
	lead, ok := r.byte()
	if !ok || depth == 0 {
		return false
	}
	switch lead {
	case leadMinKey, leadMissing, leadNull, leadBoolean, leadBoolean + 1, leadMaxKey, leadUnknown:
		return true
	case leadString, leadCode:
		return r.text()
	case leadDocument:
		return r.elements(depth-1, true)
	case leadArray:
		return r.elements(depth-1, false)
	case leadBinary:
		n, ok := r.length()
		return ok && r.skip(n+1)
	case leadObjectID:
		return r.skip(12)
	case leadDateTime, leadTimestamp:
		return r.skip(8)
	case leadRegex:
		pattern := r.text()
		return pattern && r.text()
	case leadDBPointer:
		n, ok := r.length()
		return ok && r.skip(n)
	case leadCodeWithScope:
		return r.text() && r.elements(depth-1, true)
	}
	return r.number(int(lead))
}

// number passes over what follows a number's lead byte.
func (r *keyReader) number(lead int) bool {
	side := lead - leadZero
	if side < -leadGreat || side > leadGreat {
		return lead == leadNaN
	}
	if side == 0 {
		return true
	}
	saved := r.mask
	if side < 0 {
		side = -side
		r.mask = ^r.mask
	}
	ok := r.magnitude(side)
	r.mask = saved
	return ok
}

func (r *keyReader) magnitude(lead int) bool {
	if lead != leadFraction && lead != leadGreat {
		size := lead - leadFraction
		if len(r.rest) < size {
			return false
		}
		fraction := (r.rest[size-1]^r.mask)&1 == 1
		r.rest = r.rest[size:]
		if !fraction {
			return true
		}
	}
	if !r.skip(8) {
		return false
	}
	more, ok := r.byte()
	return ok && (more == 0 || r.skip(18))
}

func (r *keyReader) elements(depth int, keys bool) bool {
	for {
		if len(r.rest) == 0 {
			return false
		}
		if r.rest[0]^r.mask == 0 {
			return r.skip(1)
		}
		if keys && !(r.skip(1) && r.text()) {
			return false
		}
		if !r.value(depth) {
			return false
		}
	}
}

func (r *keyReader) text() bool {
	i := bytes.IndexByte(r.rest, textEnd^r.mask)
	return i >= 0 && r.skip(i+1)
}

func (r *keyReader) length() (int, bool) {
	b, ok := r.byte()
	if !ok || b != longLength {
		return int(b), ok
	}
	if len(r.rest) < 4 {
		return 0, false
	}
	n := binary.BigEndian.Uint32(r.rest)
	if r.mask != 0 {
		n = ^n
	}
	r.rest = r.rest[4:]
	return int(n), true
}

func (r *keyReader) byte() (byte, bool) {
	if len(r.rest) == 0 {
		return 0, false
	}
	b := r.rest[0] ^ r.mask
	r.rest = r.rest[1:]
	return b, true
}

func (r *keyReader) skip(n int) bool {
	if n < 0 || len(r.rest) < n {
		return false
	}
	r.rest = r.rest[n:]
	return true
}
