package bson

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
)

// Compare orders two numbers by exact value, of whatever types; NaN is below all others, and zeros are equal.
func (n Number) Compare(m Number) int {
	switch {
	case n.t == TypeDecimal128 && m.t == TypeDouble:
		return compareDecimalDouble(n.decimal(), m.Float64())
	case n.t == TypeDouble && m.t == TypeDecimal128:
		return -compareDecimalDouble(m.decimal(), n.Float64())
	case n.t == TypeDecimal128 || m.t == TypeDecimal128:
		return compareDecimals(n.decimal(), m.decimal())
	case n.t == TypeDouble && m.t == TypeDouble:
		return cmp.Compare(n.Float64(), m.Float64())
	case n.t == TypeDouble:
		return -compareIntDouble(int64(m.lo), n.Float64())
	case m.t == TypeDouble:
		return compareIntDouble(int64(n.lo), m.Float64())
	default:
		return cmp.Compare(int64(n.lo), int64(m.lo))
	}
}

func compareNumbers(a, b Value) int {
	n, _ := NumberOf(a)
	m, _ := NumberOf(b)
	return n.Compare(m)
}

func compareIntDouble(i int64, f float64) int {
	switch {
	case math.IsNaN(f) || f < -1<<63:
		return 1
	case f >= 1<<63:
		return -1
	}
	whole := int64(f)
	if c := cmp.Compare(i, whole); c != 0 {
		return c
	}
	return cmp.Compare(0, f-float64(whole))
}

func compareDecimals(a, b decimal) int {
	if a.form == nan || b.form == nan {
		return cmp.Compare(b2i(b.form == nan), b2i(a.form == nan))
	}
	sign := a.sign()
	if c := cmp.Compare(sign, b.sign()); c != 0 || sign == 0 {
		return c
	}
	return sign * compareMagnitudes(a, b)
}

// compareMagnitudes orders |a| and |b|, both not zero and not NaN.
func compareMagnitudes(a, b decimal) int {
	if a.form == infinite || b.form == infinite {
		return cmp.Compare(a.form, b.form)
	}
	if c := cmp.Compare(a.adjusted(), b.adjusted()); c != 0 {
		return c
	}
	// With equal first digits' places the exponents differ by 33 at most, and the scaled coefficient has no more digits than the other.
	if a.exp > b.exp {
		return a.c.scale(a.exp - b.exp).cmp(b.c)
	}
	return a.c.cmp(b.c.scale(b.exp - a.exp))
}

func compareDecimalDouble(d decimal, f float64) int {
	switch {
	case d.form == nan || math.IsNaN(f):
		return cmp.Compare(b2i(math.IsNaN(f)), b2i(d.form == nan))
	case d.form == infinite:
		return cmp.Compare(d.float64(), f)
	case math.IsInf(f, 0):
		return cmp.Compare(0, f)
	}
	sign := d.sign()
	if c := cmp.Compare(sign, Double(f).Sign()); c != 0 || sign == 0 {
		return c
	}
	d.neg = false
	return sign * compareNear(d, math.Abs(f))
}

// compareNear orders a finite d > 0 and a finite f > 0. Rounding is monotonic, so where the double nearest to d is another
// than f it decides.
func compareNear(d decimal, f float64) int {
	if c := cmp.Compare(d.float64(), f); c != 0 {
		return c
	}
	fraction, e := math.Frexp(f)
	m, e := uint64(fraction*(1<<53)), e-53 // f = m·2^e
	if c, ok := compareNarrow(d, m, e); ok {
		return c
	}
	l := new(big.Int).SetUint64(d.c.hi)
	l.Lsh(l, 64).Or(l, new(big.Int).SetUint64(d.c.lo))
	r := new(big.Int).SetUint64(m)
	ten := big.NewInt(10)
	if d.exp >= 0 {
		l.Mul(l, ten.Exp(ten, big.NewInt(int64(d.exp)), nil))
	} else {
		r.Mul(r, ten.Exp(ten, big.NewInt(int64(-d.exp)), nil))
	}
	if e >= 0 {
		r.Lsh(r, uint(e))
	} else {
		l.Lsh(l, uint(-e))
	}
	return l.Cmp(r)
}

// compareNarrow orders d and m·2^e where 128 bits hold both sides, and says whether they do: c·10^exp against m·2^e, divided by
// 2^exp, with the power of five on the side where it multiplies.
func compareNarrow(d decimal, m uint64, e int) (int, bool) {
	l, r := d.c, uint128{lo: m}
	five, shift := d.exp, e-d.exp
	side := &l
	if five < 0 {
		five, side = -five, &r
	}
	if five >= len(powers5) || side.bitLen()+bits.Len64(powers5[five]) > 128 {
		return 0, false
	}
	*side = side.mul(powers5[five])
	side = &r
	if shift < 0 {
		shift, side = -shift, &l
	}
	if side.bitLen()+shift > 128 {
		return 0, false
	}
	*side = side.shl(uint(shift))
	return l.cmp(r), true
}

// powers5 holds the powers of five below 2^64.
var powers5 = func() (p [28]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 5
	}
	return p
}()

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
