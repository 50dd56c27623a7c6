package bson

import (
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Number is a value of one of the four numeric types, held without allocation. The zero Number is no number: its Type is 0.
type Number struct {
	t      Type
	hi, lo uint64 // Decimal128's halves; the others use lo alone
}

// Int32 returns n as a Number of BSON type int32.
func Int32(n int32) Number { return Number{t: TypeInt32, lo: uint64(n)} }

// Int64 returns n as a Number of BSON type int64.
func Int64(n int64) Number { return Number{t: TypeInt64, lo: uint64(n)} }

// Double returns f as a Number of BSON type double.
func Double(f float64) Number { return Number{t: TypeDouble, lo: math.Float64bits(f)} }

// NumberOf returns the number that v is, and false if v is of another type.
func NumberOf(v Value) (Number, bool) {
	switch v.Type {
	case TypeInt32:
		if len(v.Data) >= 4 {
			return Int32(int32(binary.LittleEndian.Uint32(v.Data))), true
		}
	case TypeInt64, TypeDouble:
		if len(v.Data) >= 8 {
			return Number{t: v.Type, lo: binary.LittleEndian.Uint64(v.Data)}, true
		}
	case TypeDecimal128:
		if len(v.Data) >= 16 {
			return Number{t: v.Type, lo: binary.LittleEndian.Uint64(v.Data), hi: binary.LittleEndian.Uint64(v.Data[8:])}, true
		}
	}
	return Number{}, false
}

// Type returns n's BSON type.
func (n Number) Type() Type { return n.t }

// Append appends the bytes of n's value to dst, without type and key.
func (n Number) Append(dst []byte) []byte {
	switch n.t {
	case TypeInt32:
		return binary.LittleEndian.AppendUint32(dst, uint32(n.lo))
	case TypeInt64, TypeDouble:
		return binary.LittleEndian.AppendUint64(dst, n.lo)
	case TypeDecimal128:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, n.lo), n.hi)
	}
	return dst
}

// Value returns n as a Value with memory of its own.
func (n Number) Value() Value { return Value{Type: n.t, Data: n.Append(nil)} }

// Float64 returns the double nearest to n.
func (n Number) Float64() float64 {
	switch n.t {
	case TypeInt32, TypeInt64:
		return float64(int64(n.lo))
	case TypeDouble:
		return math.Float64frombits(n.lo)
	case TypeDecimal128:
		return n.decimal().float64()
	}
	return 0
}

// Int64 returns n as an integer, and false if it has a fraction, is outside int64's range, infinite or NaN.
func (n Number) Int64() (int64, bool) {
	i, whole, ok := n.truncated()
	if !ok || !whole {
		return 0, false
	}
	return i, true
}

// TruncInt64 returns n without its fraction, and false if that is outside int64's range, infinite or NaN.
func (n Number) TruncInt64() (int64, bool) {
	i, _, ok := n.truncated()
	return i, ok
}

// truncated returns the integer part, whether that is all of n, and whether it fits.
func (n Number) truncated() (i int64, whole, ok bool) {
	switch n.t {
	case TypeInt32, TypeInt64:
		return int64(n.lo), true, true
	case TypeDouble:
		f := math.Float64frombits(n.lo)
		if !(f >= -1<<63 && f < 1<<63) {
			return 0, false, false
		}
		i = int64(f)
		return i, float64(i) == f, true
	case TypeDecimal128:
		d := n.decimal()
		if d.form != finite {
			return 0, false, false
		}
		m, whole, ok := d.integerPart()
		switch {
		case !ok || m > 1<<63 || m == 1<<63 && !d.neg:
			return 0, false, false
		case d.neg:
			return -int64(m), whole, true
		default:
			return int64(m), whole, true
		}
	}
	return 0, false, false
}

// IsNaN reports whether n is a double's or a decimal's NaN.
func (n Number) IsNaN() bool {
	switch n.t {
	case TypeDouble:
		return math.IsNaN(math.Float64frombits(n.lo))
	case TypeDecimal128:
		return n.decimal().form == nan
	}
	return false
}

// IsInf reports whether n is an infinity of either sign.
func (n Number) IsInf() bool {
	switch n.t {
	case TypeDouble:
		return math.IsInf(math.Float64frombits(n.lo), 0)
	case TypeDecimal128:
		return n.decimal().form == infinite
	}
	return false
}

// Sign returns -1, 0 or 1; 0 for NaN.
func (n Number) Sign() int {
	switch n.t {
	case TypeInt32, TypeInt64:
		switch i := int64(n.lo); {
		case i < 0:
			return -1
		case i > 0:
			return 1
		}
	case TypeDouble:
		switch f := math.Float64frombits(n.lo); {
		case f < 0:
			return -1
		case f > 0:
			return 1
		}
	case TypeDecimal128:
		return n.decimal().sign()
	}
	return 0
}

// IsZero reports whether n is a zero of any type and sign.
func (n Number) IsZero() bool { return n.Sign() == 0 && !n.IsNaN() }

// String gives n as text: integers and decimals as MongoDB prints them ("1E+3", "-0", "Infinity"), doubles in the
// shortest form that reads back.
func (n Number) String() string {
	switch n.t {
	case TypeInt32, TypeInt64:
		return strconv.FormatInt(int64(n.lo), 10)
	case TypeDouble:
		return strconv.FormatFloat(math.Float64frombits(n.lo), 'g', -1, 64)
	case TypeDecimal128:
		return bson.NewDecimal128(n.hi, n.lo).String()
	}
	return ""
}
