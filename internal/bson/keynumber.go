package bson

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Numbers take numberLeads lead bytes: NaN, then the negative numbers from great magnitudes to small ones, zero, and the positive
// ones. What follows the lead byte of a negative number is the key of its magnitude, inverted.
const (
	leadNaN      = leadNumber
	leadZero     = leadNumber + 11
	numberLeads  = 22
	leadFraction = 1  // beside leadZero: magnitudes below 1
	leadGreat    = 10 // beside leadZero: magnitudes of 2^63 and more; between the two, the integer part's bytes plus 1
)

func (n Number) appendKey(dst []byte) []byte {
	switch {
	case n.IsNaN():
		return append(dst, leadNaN)
	case n.Sign() == 0:
		return append(dst, leadZero)
	case n.Sign() > 0:
		return n.appendMagnitude(dst)
	}
	start := len(dst)
	dst = n.appendMagnitude(dst)
	dst[start] = 2*leadZero - dst[start]
	for i := start + 1; i < len(dst); i++ {
		dst[i] = ^dst[i]
	}
	return dst
}

// appendMagnitude appends the key of |n|, which is not zero: a lead byte; below 2^63 the integer part, shifted by a bit that tells
// whether a fraction follows, in as few bytes as hold it; then for fractions and great magnitudes the greatest double that is at
// most |n|, a byte that tells whether it is less, and then the exact decimal.
func (n Number) appendMagnitude(dst []byte) []byte {
	whole, exact, ok := n.wholeMagnitude()
	switch {
	case !ok:
		return n.appendExact(append(dst, leadZero+leadGreat))
	case whole == 0:
		return n.appendExact(append(dst, leadZero+leadFraction))
	}
	whole <<= 1
	if !exact {
		whole |= 1
	}
	size := (bits.Len64(whole) + 7) / 8
	dst = append(dst, leadZero+leadFraction+byte(size))
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(whole>>shift))
	}
	if exact {
		return dst
	}
	return n.appendExact(dst)
}

// wholeMagnitude returns the integer part of |n|, whether that is all of it, and whether it is below 2^63.
func (n Number) wholeMagnitude() (m uint64, exact, ok bool) {
	switch n.t {
	case TypeDouble:
		f := math.Abs(n.Float64())
		if f >= 1<<63 {
			return 0, false, false
		}
		m = uint64(f)
		return m, float64(m) == f, true
	case TypeDecimal128:
		d := n.decimal()
		if d.form != finite {
			return 0, false, false
		}
		m, exact, ok = d.integerPart()
	default:
		m, exact, ok = magnitude(int64(n.lo)), true, true
	}
	return m, exact, ok && m < 1<<63
}

// appendExact appends the bits of the greatest double that is at most |n|, and 0 if it is |n|; else 1 and |n|'s 34 digits.
func (n Number) appendExact(dst []byte) []byte {
	f, d, exact := n.floorMagnitude()
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	if exact {
		return append(dst, 0)
	}
	zeros := decimalDigits - d.c.digits()
	c := d.c.scale(zeros)
	dst = append(dst, 1)
	dst = binary.BigEndian.AppendUint16(dst, uint16(d.exp-zeros-minExp+decimalDigits))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, c.hi), c.lo)
}

// floorMagnitude returns the greatest double that is at most |n|, and whether it equals |n|; where it does not, n is the finite
// decimal d.
func (n Number) floorMagnitude() (f float64, d decimal, exact bool) {
	switch n.t {
	case TypeDouble:
		return math.Abs(n.Float64()), decimal{}, true
	case TypeInt32, TypeInt64: // only -2^63 has a magnitude that is not written as an integer
		return float64(magnitude(int64(n.lo))), decimal{}, true
	}
	d = n.decimal()
	d.neg = false
	f = d.float64()
	switch {
	case d.form == infinite:
		return f, d, true
	case math.IsInf(f, 0):
		return math.MaxFloat64, d, false
	case f == 0:
		return 0, d, false
	}
	switch compareNear(d, f) {
	case 0:
		return f, d, true
	case -1:
		f = math.Nextafter(f, 0)
	}
	return f, d, false
}
