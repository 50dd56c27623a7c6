package bson

import (
	"math"

	"github.com/cockroachdb/apd/v3"
)

// Round rounds n to so many decimal places, ties to even, keeping its type; places below zero round to tens, hundreds, ….
// overflow is as in Add.
func (n Number) Round(places int) (rounded Number, overflow bool) {
	return n.quantize(places, apd.RoundHalfEven, math.RoundToEven)
}

// Trunc cuts n to so many decimal places, under the rules of Round.
func (n Number) Trunc(places int) (cut Number, overflow bool) {
	return n.quantize(places, apd.RoundDown, math.Trunc)
}

func (n Number) quantize(places int, mode apd.Rounder, whole func(float64) float64) (Number, bool) {
	var x apd.Decimal
	switch n.t {
	case TypeInt32, TypeInt64:
		if places >= 0 {
			return n, false
		}
		n.unpack(&x)
	case TypeDouble:
		f := n.Float64()
		if places == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
			return Double(whole(f)), false
		}
		unpackDouble(&x, f, decimalDigits) // as MongoDB does here, not with the 15 digits of its conversions
	default:
		n.unpack(&x)
	}
	if x.Form != apd.Finite || int(x.Exponent) >= -places {
		return n, false
	}
	context := decimalContext
	context.Rounding = mode
	var r apd.Decimal
	if _, err := context.Quantize(&r, &x, int32(-places)); err != nil {
		return n, false
	}
	d := packDecimal(&r)
	switch n.t {
	case TypeDecimal128:
		return d, false
	case TypeDouble:
		return Double(d.Float64()), false
	}
	i, ok := d.Int64()
	if !ok {
		return Double(d.Float64()), true
	}
	return integer(n, n, i), false
}

// Sqrt returns n's square root as a double, or as a Decimal128 if n is one.
func (n Number) Sqrt() Number { return n.function(math.Sqrt, decimalContext.Sqrt) }

// Exp returns e to the power n, typed as by Sqrt.
func (n Number) Exp() Number { return n.function(math.Exp, decimalContext.Exp) }

// Ln returns n's natural logarithm, typed as by Sqrt.
func (n Number) Ln() Number { return n.function(math.Log, decimalContext.Ln) }

// Log10 returns n's logarithm to base 10, typed as by Sqrt.
func (n Number) Log10() Number { return n.function(math.Log10, decimalContext.Log10) }

func (n Number) function(double func(float64) float64, dec func(d, x *apd.Decimal) (apd.Condition, error)) Number {
	if n.t == TypeDecimal128 {
		return unaryDecimal(n, dec)
	}
	return Double(double(n.Float64()))
}

// Pow returns n to the power m: an integer for integers as long as it fits an int64, a double beyond that and for negative
// powers; else of the wider type.
func (n Number) Pow(m Number) Number {
	switch wider(n, m) {
	case TypeDecimal128:
		return binaryDecimal(n, m, decimalContext.Pow)
	case TypeDouble:
		return Double(math.Pow(n.Float64(), m.Float64()))
	}
	power, ok := integerPower(int64(n.lo), int64(m.lo))
	if !ok {
		return Double(math.Pow(n.Float64(), m.Float64()))
	}
	return integer(n, m, power)
}

// integerPower returns base^exponent, and false if that is no int64.
func integerPower(base, exponent int64) (int64, bool) {
	switch {
	case base == 1 || base == -1 && exponent%2 == 0:
		return 1, true
	case base == -1:
		return -1, true
	case exponent < 0:
		return 0, false
	case base == 0 && exponent > 0:
		return 0, true
	}
	result := Int64(1)
	for ; exponent > 0; exponent-- { // at most 63 rounds: the base's magnitude is two or more
		var overflow bool
		if result, overflow = result.Mul(Int64(base)); overflow {
			return 0, false
		}
	}
	return int64(result.lo), true
}
