package query

import (
	"math"
	"math/bits"

	"oxbow/internal/bson"
)

// summation adds numbers of all types as $add, $sum and $avg do: integers exactly, doubles with the error of each addition kept
// apart, decimals apart from both. The result has the widest type that was added, or a wider one that it fits in. Sums of parts can be
// merged. The zero summation is an int32 zero.
type summation struct {
	kind        bson.Type // widest type so far; 0 counts as int32
	hi          int64     // integers, 128 bits
	lo          uint64
	sum, rest   float64 // doubles
	special     float64 // plain sum, for infinities and NaN
	decimal     bson.Number
	haveDecimal bool
}

// rank orders the numeric types by width.
func rank(t bson.Type) int {
	switch t {
	case bson.TypeInt64:
		return 1
	case bson.TypeDouble:
		return 2
	case bson.TypeDecimal128:
		return 3
	}
	return 0
}

// add adds a number; it reports false, and does nothing, for a value of another type.
func (t *summation) add(v bson.Value) bool {
	switch v.Type {
	case bson.TypeInt32:
		t.addInt(intOf(v))
		return true
	case bson.TypeInt64:
		t.addInt(intOf(v))
	case bson.TypeDouble:
		t.addDouble(doubleOf(v))
	case bson.TypeDecimal128:
		n, _ := bson.NumberOf(v)
		t.addDecimal(n)
	default:
		return false
	}
	if rank(v.Type) > rank(t.kind) {
		t.kind = v.Type
	}
	return true
}

func (t *summation) addInt(i int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(i), 0)
	t.hi += i>>63 + int64(carry)
}

func (t *summation) addDouble(x float64) {
	t.special += x
	s := t.sum + x
	b := s - t.sum
	t.rest += (t.sum - (s - b)) + (x - b)
	t.sum = s
}

func (t *summation) addDecimal(n bson.Number) {
	if !t.haveDecimal {
		t.decimal, t.haveDecimal = n, true
		return
	}
	t.decimal, _ = t.decimal.Add(n)
}

// integer returns the sum of the integers, and false if it needs more than 64 bits.
func (t *summation) integer() (int64, bool) {
	return int64(t.lo), t.hi == int64(t.lo)>>63
}

// float returns the sum of integers and doubles as a double.
func (t *summation) float() float64 {
	all := *t
	if i, ok := t.integer(); ok {
		high := i &^ (1<<32 - 1) // both halves are exact as doubles
		all.addDouble(float64(high))
		all.addDouble(float64(i - high))
	} else {
		all.addDouble(math.Ldexp(float64(t.hi), 64))
		all.addDouble(float64(t.lo))
	}
	if f := all.sum + all.rest; !math.IsNaN(f) {
		return f
	}
	return all.special
}

// total returns the sum of everything as a decimal.
func (t *summation) total() bson.Number {
	n := t.decimal
	i, ok := t.integer()
	switch {
	case !ok || math.IsNaN(t.sum) || math.IsInf(t.sum, 0):
		n, _ = n.Add(bson.Double(t.float()).WideDecimal())
		return n
	case t.special != 0 || t.sum != 0:
		n, _ = n.Add(bson.Double(t.sum).WideDecimal())
		n, _ = n.Add(bson.Double(t.rest).WideDecimal())
	}
	if i != 0 {
		n, _ = n.Add(bson.Int64(i))
	}
	return n
}

// result returns the sum.
func (t *summation) result(s *Scratch) bson.Value {
	switch t.kind {
	case bson.TypeDecimal128:
		return s.number(t.total())
	case bson.TypeDouble:
		return s.double(t.float())
	}
	i, ok := t.integer()
	switch {
	case !ok:
		return s.double(t.float())
	case t.kind == bson.TypeInt64:
		return s.int64(i)
	}
	return s.intOrLong(i)
}

// mean returns the sum divided by n: a decimal if one was added, else a double.
func (t *summation) mean(s *Scratch, n int64) bson.Value {
	if t.kind == bson.TypeDecimal128 {
		return s.number(t.total().Div(bson.Int64(n)))
	}
	return s.double(t.float() / float64(n))
}

func (s *Scratch) number(n bson.Number) bson.Value {
	return bson.Value{Type: n.Type(), Data: n.Append(s.grabSmall(16))}
}

// deviation computes a standard deviation in one pass (Welford's method).
type deviation struct {
	n        int64
	mean, m2 float64
}

// add counts a number; other values don't count.
func (d *deviation) add(v bson.Value) {
	if !bson.IsNumber(v.Type) {
		return
	}
	x := floatOf(v)
	d.n++
	delta := x - d.mean
	if delta != 0 {
		d.mean += delta / float64(d.n)
		d.m2 += delta * (x - d.mean)
	}
}

// result returns the deviation of the population or of a sample, null if there are too few numbers.
func (d *deviation) result(s *Scratch, sample bool) bson.Value {
	n := d.n
	if sample {
		n--
	}
	if n <= 0 {
		return bson.Null
	}
	return s.double(math.Sqrt(d.m2 / float64(n)))
}
