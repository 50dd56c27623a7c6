package bson

import (
	"math"
	"math/bits"
)

// The result of an operation has the wider of its operands' types, in the order int32, int64, double, Decimal128. Two int32
// give an int32 if it fits, else an int64. Where an int64 does not fit, overflow is true and the result is the double: $inc and
// $mul refuse it then, expressions go on with it.

// Add returns n + m.
func (n Number) Add(m Number) (sum Number, overflow bool) {
	switch wider(n, m) {
	case TypeDecimal128:
		return decimalAdd(n, m), false
	case TypeDouble:
		return Double(n.Float64() + m.Float64()), false
	}
	a, b := int64(n.lo), int64(m.lo)
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		return Double(float64(a) + float64(b)), true
	}
	return integer(n, m, s), false
}

// Sub returns n - m.
func (n Number) Sub(m Number) (difference Number, overflow bool) {
	switch wider(n, m) {
	case TypeDecimal128:
		return decimalSub(n, m), false
	case TypeDouble:
		return Double(n.Float64() - m.Float64()), false
	}
	a, b := int64(n.lo), int64(m.lo)
	d := a - b
	if (d < a) != (b > 0) && b != 0 {
		return Double(float64(a) - float64(b)), true
	}
	return integer(n, m, d), false
}

// Mul returns n · m.
func (n Number) Mul(m Number) (product Number, overflow bool) {
	switch wider(n, m) {
	case TypeDecimal128:
		return decimalMul(n, m), false
	case TypeDouble:
		return Double(n.Float64() * m.Float64()), false
	}
	a, b := int64(n.lo), int64(m.lo)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !negative {
		return Double(float64(a) * float64(b)), true
	}
	return integer(n, m, a*b), false
}

// Div returns n / m as a double, or as a Decimal128 if one of them is; by zero it gives an infinity or NaN, which $divide
// refuses beforehand.
func (n Number) Div(m Number) Number {
	if wider(n, m) == TypeDecimal128 {
		return decimalQuo(n, m)
	}
	return Double(n.Float64() / m.Float64())
}

// Mod returns the remainder of n / m truncated, with n's sign; NaN if m is zero.
func (n Number) Mod(m Number) Number {
	switch wider(n, m) {
	case TypeDecimal128:
		return decimalRem(n, m)
	case TypeDouble:
		return Double(math.Mod(n.Float64(), m.Float64()))
	}
	a, b := int64(n.lo), int64(m.lo)
	if b == 0 {
		return Double(math.NaN())
	}
	return integer(n, m, a%b)
}

// Neg returns -n, under the rules of Sub.
func (n Number) Neg() (negated Number, overflow bool) {
	switch n.t {
	case TypeDecimal128:
		n.hi ^= 1 << 63
		return n, false
	case TypeDouble:
		return Double(-n.Float64()), false
	}
	return Int32(0).Sub(n)
}

// Abs returns |n|, under the rules of Sub.
func (n Number) Abs() (absolute Number, overflow bool) {
	switch n.t {
	case TypeDecimal128:
		n.hi &^= 1 << 63
		return n, false
	case TypeDouble:
		return Double(math.Abs(n.Float64())), false
	}
	if n.Sign() < 0 {
		return n.Neg()
	}
	return n, false
}

// Floor returns the greatest whole number of n's type that is at most n.
func (n Number) Floor() Number {
	return n.toWhole(math.Floor, decimalFloor)
}

// Ceil returns the least whole number of n's type that is at least n.
func (n Number) Ceil() Number {
	return n.toWhole(math.Ceil, decimalCeil)
}

// toWhole rounds doubles and decimals; integers are whole.
func (n Number) toWhole(double func(float64) float64, dec func(Number) Number) Number {
	switch n.t {
	case TypeDouble:
		return Double(double(n.Float64()))
	case TypeDecimal128:
		if n.decimal().form == finite {
			return dec(n)
		}
	}
	return n
}

// wider returns the wider of two numbers' types.
func wider(n, m Number) Type {
	switch {
	case n.t == TypeDecimal128 || m.t == TypeDecimal128:
		return TypeDecimal128
	case n.t == TypeDouble || m.t == TypeDouble:
		return TypeDouble
	case n.t == TypeInt64 || m.t == TypeInt64:
		return TypeInt64
	default:
		return TypeInt32
	}
}

// integer returns i as the result of an operation on the integers n and m.
func integer(n, m Number, i int64) Number {
	if n.t == TypeInt32 && m.t == TypeInt32 && i == int64(int32(i)) {
		return Int32(int32(i))
	}
	return Int64(i)
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}
