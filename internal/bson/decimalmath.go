package bson

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/apd/v3"
)

// decimalContext is Decimal128's arithmetic: 34 digits, ties to even, gradual underflow.
var decimalContext = apd.Context{
	Precision:   decimalDigits,
	MaxExponent: maxExp + decimalDigits - 1,
	MinExponent: minExp + decimalDigits - 1,
	Rounding:    apd.RoundHalfEven,
}

var errNoDecimal = errors.New("no decimal number")

// ParseDecimal reads a Decimal128 from text, as Extended JSON and $toDecimal write it: digits with point and exponent,
// "Infinity", "NaN". More than 34 digits are rounded.
func ParseDecimal(text string) (Number, error) {
	var x apd.Decimal
	if _, _, err := x.SetString(text); err != nil || x.Form == apd.NaNSignaling {
		return Number{}, fmt.Errorf("parse %.64q: %w", text, errNoDecimal)
	}
	return packDecimal(&x), nil
}

// Decimal returns n as a Decimal128: integers exactly, doubles to 15 significant digits as MongoDB converts them.
func (n Number) Decimal() Number {
	if n.t == TypeDecimal128 {
		return n
	}
	var x apd.Decimal
	n.unpack(&x)
	return packDecimal(&x)
}

// WideDecimal returns n as a Decimal128 as MongoDB converts the terms of sums ($add, $sum, $avg): doubles to 34 significant digits,
// without zeros at the end.
func (n Number) WideDecimal() Number {
	if n.t != TypeDouble {
		return n.Decimal()
	}
	var x apd.Decimal
	unpackDouble(&x, n.Float64(), decimalDigits)
	if x.Form == apd.Finite {
		x.Reduce(&x)
		if x.Exponent > 0 && x.NumDigits()+int64(x.Exponent) <= decimalDigits { // whole numbers are written as such
			_, _ = decimalContext.Quantize(&x, &x, 0)
		}
	}
	return packDecimal(&x)
}

// unpack sets x to n.
func (n Number) unpack(x *apd.Decimal) {
	if n.t == TypeDouble {
		unpackDouble(x, n.Float64(), doubleDigits)
		return
	}
	d := n.decimal()
	switch d.form {
	case nan:
		x.Form = apd.NaN
		return
	case infinite:
		x.Form = apd.Infinite
		x.Negative = d.neg
		return
	}
	x.Form, x.Negative, x.Exponent = apd.Finite, d.neg, int32(d.exp)
	x.Coeff.SetUint64(d.c.lo)
	if d.c.hi != 0 {
		var high apd.BigInt
		high.SetUint64(d.c.hi)
		high.Lsh(&high, 64)
		x.Coeff.Add(&x.Coeff, &high)
	}
}

// doubleDigits is the number of digits that MongoDB keeps of a double in a Decimal128.
const doubleDigits = 15

// unpackDouble sets x to f rounded to so many significant digits.
func unpackDouble(x *apd.Decimal, f float64, digits int) {
	var buf [48]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', digits-1, 64)
	if f == 0 {
		text = strconv.AppendFloat(buf[:0], f, 'f', 0, 64)
	}
	if _, _, err := x.SetString(string(text)); err != nil {
		x.Form = apd.NaN
	}
}

// packDecimal rounds x to a Decimal128.
func packDecimal(x *apd.Decimal) Number {
	var r apd.Decimal
	// Without traps the conditions (inexact, overflow to infinity, …) are no errors, and r holds the standard's result.
	_, _ = decimalContext.Round(&r, x)
	switch r.Form {
	case apd.Infinite:
		return decimal{form: infinite, neg: r.Negative}.number()
	case apd.Finite:
	default:
		return decimal{form: nan}.number()
	}
	d := decimal{neg: r.Negative, exp: int(r.Exponent)}
	var b [16]byte
	r.Coeff.FillBytes(b[:])
	for i, x := range b {
		if i < 8 {
			d.c.hi = d.c.hi<<8 | uint64(x)
		} else {
			d.c.lo = d.c.lo<<8 | uint64(x)
		}
	}
	if d.c.isZero() {
		d.exp = min(max(d.exp, minExp), maxExp)
	}
	if d.exp > maxExp { // the same value with zeros behind its digits, which MaxExponent leaves room for
		d.c = d.c.scale(d.exp - maxExp)
		d.exp = maxExp
	}
	return d.number()
}

// binaryDecimal applies one of apd's operations to two numbers.
func binaryDecimal(n, m Number, op func(d, x, y *apd.Decimal) (apd.Condition, error)) Number {
	var x, y, r apd.Decimal
	n.unpack(&x)
	m.unpack(&y)
	if _, err := op(&r, &x, &y); err != nil {
		r.Form = apd.NaN
	}
	return packDecimal(&r)
}

// unaryDecimal applies one of apd's operations to a number.
func unaryDecimal(n Number, op func(d, x *apd.Decimal) (apd.Condition, error)) Number {
	var x, r apd.Decimal
	n.unpack(&x)
	if _, err := op(&r, &x); err != nil {
		r.Form = apd.NaN
	}
	return packDecimal(&r)
}

func decimalAdd(n, m Number) Number { return binaryDecimal(n, m, decimalContext.Add) }
func decimalSub(n, m Number) Number { return binaryDecimal(n, m, decimalContext.Sub) }
func decimalMul(n, m Number) Number { return binaryDecimal(n, m, decimalContext.Mul) }
func decimalRem(n, m Number) Number { return binaryDecimal(n, m, decimalContext.Rem) }

// decimalQuo divides; of the forms of an exact quotient it gives the one that the standard prefers, with the operands' difference
// of exponents if its digits allow.
func decimalQuo(n, m Number) Number {
	var x, y, r apd.Decimal
	n.unpack(&x)
	m.unpack(&y)
	if _, err := decimalContext.Quo(&r, &x, &y); err != nil {
		r.Form = apd.NaN
	}
	q := packDecimal(&r)
	d := q.decimal()
	if d.form != finite {
		return q
	}
	for ideal := int(x.Exponent - y.Exponent); d.exp < ideal; d.exp++ {
		c, rest := d.c.div(10)
		if rest != 0 || c.isZero() {
			break
		}
		d.c = c
	}
	return d.number()
}

func decimalFloor(n Number) Number { return unaryDecimal(n, decimalContext.Floor) }
func decimalCeil(n Number) Number  { return unaryDecimal(n, decimalContext.Ceil) }
