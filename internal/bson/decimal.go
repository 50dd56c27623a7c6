package bson

import (
	"math/bits"
	"strconv"
)

// form tells finite decimals from the others.
type form uint8

const (
	finite form = iota
	infinite
	nan
)

// decimal is a Decimal128 taken apart: ±c·10^exp. The source is IEEE 754-2008's binary integer encoding.
type decimal struct {
	c    uint128
	exp  int
	neg  bool
	form form
}

// Decimal128's limits: 34 digits, exponents of the integer coefficient from minExp to maxExp.
const (
	decimalDigits = 34
	minExp        = -6176
	maxExp        = 6111
)

// decimal takes a Decimal128, int32 or int64 apart. Coefficients beyond 34 digits count as zero, as the standard says.
func (n Number) decimal() decimal {
	if n.t != TypeDecimal128 {
		i := int64(n.lo)
		if i < 0 {
			return decimal{c: uint128{lo: -uint64(i)}, neg: true}
		}
		return decimal{c: uint128{lo: uint64(i)}}
	}
	d := decimal{neg: n.hi>>63 == 1}
	switch n.hi >> 58 & 0x1f {
	case 0x1f:
		d.form = nan
		return d
	case 0x1e:
		d.form = infinite
		return d
	}
	if n.hi>>61&3 == 3 {
		d.exp = int(n.hi>>47&(1<<14-1)) + minExp
		return d
	}
	d.exp = int(n.hi>>49&(1<<14-1)) + minExp
	d.c = uint128{hi: n.hi & (1<<49 - 1), lo: n.lo}
	if d.c.cmp(pow10(decimalDigits)) >= 0 {
		d.c = uint128{}
	}
	return d
}

// number puts d together; d's coefficient and exponent must be within the limits.
func (d decimal) number() Number {
	n := Number{t: TypeDecimal128}
	switch d.form {
	case nan:
		n.hi = 0x1f << 58
		return n
	case infinite:
		n.hi = 0x1e << 58
	default:
		n.hi, n.lo = d.c.hi|uint64(d.exp-minExp)<<49, d.c.lo
	}
	if d.neg {
		n.hi |= 1 << 63
	}
	return n
}

func (d decimal) sign() int {
	switch {
	case d.form == nan || d.form == finite && d.c.isZero():
		return 0
	case d.neg:
		return -1
	default:
		return 1
	}
}

// adjusted returns the exponent of the first digit of a coefficient that is not zero: 10^adjusted <= |d| < 10^(adjusted+1).
func (d decimal) adjusted() int { return d.exp + d.c.digits() - 1 }

// integerPart returns |d| without its fraction, whether there was none, and false if it is 2^64 or more.
func (d decimal) integerPart() (m uint64, whole, ok bool) {
	if d.c.isZero() {
		return 0, true, true
	}
	switch adj := d.adjusted(); {
	case adj >= 20:
		return 0, false, false
	case adj < 0:
		return 0, false, true
	}
	c, whole := d.c, true
	if d.exp >= 0 {
		c = c.mul(pow10(d.exp).lo)
	} else {
		for k := -d.exp; k > 0; k -= 19 {
			var r uint64
			c, r = c.div(pow10(min(k, 19)).lo)
			whole = whole && r == 0
		}
	}
	return c.lo, whole, c.hi == 0
}

// float64 returns the double nearest to d, an infinity beyond the range of doubles.
func (d decimal) float64() float64 {
	var buf [64]byte
	f, _ := strconv.ParseFloat(string(d.appendText(buf[:0])), 64)
	return f
}

// appendText appends d in a form that strconv.ParseFloat takes.
func (d decimal) appendText(b []byte) []byte {
	if d.form == nan {
		return append(b, "NaN"...)
	}
	if d.neg {
		b = append(b, '-')
	}
	if d.form == infinite {
		return append(b, "Inf"...)
	}
	b = d.c.appendDigits(b)
	if d.exp != 0 {
		b = append(b, 'e')
		b = strconv.AppendInt(b, int64(d.exp), 10)
	}
	return b
}

// uint128 is an unsigned integer of 128 bits.
type uint128 struct{ hi, lo uint64 }

func (x uint128) isZero() bool { return x.hi|x.lo == 0 }

func (x uint128) cmp(y uint128) int {
	switch {
	case x.hi < y.hi || x.hi == y.hi && x.lo < y.lo:
		return -1
	case x == y:
		return 0
	default:
		return 1
	}
}

// mul returns x·y modulo 2^128.
func (x uint128) mul(y uint64) uint128 {
	hi, lo := bits.Mul64(x.lo, y)
	return uint128{hi: hi + x.hi*y, lo: lo}
}

// div returns x/y and the remainder.
func (x uint128) div(y uint64) (uint128, uint64) {
	hi, r := x.hi/y, x.hi%y
	lo, r := bits.Div64(r, x.lo, y)
	return uint128{hi: hi, lo: lo}, r
}

// shl returns x·2^n modulo 2^128.
func (x uint128) shl(n uint) uint128 {
	if n >= 64 {
		return uint128{hi: x.lo << (n - 64)}
	}
	return uint128{hi: x.hi<<n | x.lo>>(64-n), lo: x.lo << n}
}

func (x uint128) bitLen() int {
	if x.hi != 0 {
		return 64 + bits.Len64(x.hi)
	}
	return bits.Len64(x.lo)
}

// scale returns x·10^n modulo 2^128, n at most 38.
func (x uint128) scale(n int) uint128 {
	for ; n > 0; n -= 19 {
		x = x.mul(powers10[min(n, 19)].lo)
	}
	return x
}

// digits returns the number of decimal digits of x, 1 for zero. It is right below 10^34.
func (x uint128) digits() int {
	n := x.bitLen() * 1233 >> 12 // log10(2) as 1233/4096: right or one too few
	if n < len(powers10) && x.cmp(powers10[n]) >= 0 {
		n++
	}
	return max(n, 1)
}

// appendDigits appends x in decimal.
func (x uint128) appendDigits(b []byte) []byte {
	if x.hi == 0 {
		return strconv.AppendUint(b, x.lo, 10)
	}
	q, r := x.div(powers10[19].lo)
	b = q.appendDigits(b)
	for p := powers10[18].lo; p > 0; p /= 10 {
		b = append(b, byte('0'+r/p%10))
	}
	return b
}

// powers10 holds the powers of ten that a Decimal128's coefficient is compared with.
var powers10 = func() (p [decimalDigits + 1]uint128) {
	p[0].lo = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1].mul(10)
	}
	return p
}()

// pow10 returns 10^n for n from 0 to 34.
func pow10(n int) uint128 { return powers10[n] }
