package bson_test

import (
	"cmp"
	"math"
	"math/big"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

// exact returns a finite number as a fraction, by a way of its own (math/big and the driver's decoding).
func exact(t *rapid.T, n bson.Number) *big.Rat {
	r := new(big.Rat)
	switch v := n.Value(); v.Type {
	case bson.TypeDouble:
		r.SetFloat64(v.Double())
	case bson.TypeDecimal128:
		h, l := v.Decimal128()
		c, exp, err := driver.NewDecimal128(h, l).BigInt()
		if err != nil {
			t.Fatalf("%s is not finite", n)
		}
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
		if exp < 0 {
			r.SetFrac(c, p)
		} else {
			r.SetInt(c.Mul(c, p))
		}
	default:
		r.SetInt64(v.AsInt64())
	}
	return r
}

// special ranks NaN and the infinities around the finite numbers, which are 0.
func special(n bson.Number) int {
	switch {
	case n.IsNaN():
		return -2
	case n.IsInf():
		return n.Sign()
	}
	return 0
}

func TestNumbersCompareExactly(t *testing.T) {
	numbers := bsontest.Numbers()
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers.Draw(t, "a"), numbers.Draw(t, "b")
		want := cmp.Compare(special(a), special(b))
		if want == 0 && special(a) == 0 {
			want = exact(t, a).Cmp(exact(t, b))
		}
		if got := a.Compare(b); got != want {
			t.Fatalf("%s (type %s) against %s (type %s): %d, want %d", a, a.Type(), b, b.Type(), got, want)
		}
	})
}

func TestIntegerPartIsExact(t *testing.T) {
	numbers := bsontest.Numbers()
	rapid.Check(t, func(t *rapid.T) {
		n := numbers.Draw(t, "n")
		i, ok := n.TruncInt64()
		_, whole := n.Int64()
		if special(n) != 0 {
			if ok || whole {
				t.Fatalf("%s has an integer part", n)
			}
			return
		}
		r := exact(t, n)
		want := new(big.Int).Quo(r.Num(), r.Denom())
		if ok != want.IsInt64() || ok && i != want.Int64() || whole != (ok && r.IsInt()) {
			t.Fatalf("%s: integer part %d (fits %v, all of it %v), want %s", n, i, ok, whole, want)
		}
	})
}

func TestFloat64IsNearest(t *testing.T) {
	numbers := bsontest.Numbers()
	rapid.Check(t, func(t *rapid.T) {
		n := numbers.Draw(t, "n")
		if special(n) != 0 || n.Type() == bson.TypeDouble {
			return
		}
		want, _ := exact(t, n).Float64()
		if got := n.Float64(); got != want {
			t.Fatalf("%s: %v, want %v", n, got, want)
		}
	})
}

// TestDecimalArithmetic compares sums and products with exact ones, rounded to 34 digits through text.
func TestDecimalArithmetic(t *testing.T) {
	numbers := bsontest.Numbers()
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers.Draw(t, "a").Decimal(), numbers.Draw(t, "b")
		if special(a) != 0 || special(b) != 0 {
			return
		}
		for _, n := range []bson.Number{a, b} {
			// Sums of numbers far apart would need thousands of digits.
			if f := math.Abs(n.Float64()); f != 0 && (f < 1e-60 || f > 1e60) {
				return
			}
		}
		x, y := exact(t, a), exact(t, b.Decimal())
		for name, op := range map[string]struct {
			do    func(bson.Number) (bson.Number, bool)
			exact *big.Rat
		}{
			"+": {a.Add, new(big.Rat).Add(x, y)},
			"-": {a.Sub, new(big.Rat).Sub(x, y)},
			"*": {a.Mul, new(big.Rat).Mul(x, y)},
		} {
			got, overflow := op.do(b)
			if overflow || got.Type() != bson.TypeDecimal128 {
				t.Fatalf("%s %s %s: type %s, overflow %v", a, name, b, got.Type(), overflow)
			}
			// The nearest 34 digits are no further away than half a unit of the last of them.
			off := new(big.Rat).Sub(exact(t, got), op.exact)
			limit := new(big.Rat).Mul(op.exact, new(big.Rat).SetFrac(big.NewInt(5), new(big.Int).Exp(big.NewInt(10), big.NewInt(34), nil)))
			if off.Abs(off).Cmp(limit.Abs(limit)) > 0 {
				t.Fatalf("%s %s %s = %s, want %s", a, name, b, got, op.exact.FloatString(40))
			}
		}
	})
}

func TestArithmeticTypes(t *testing.T) {
	dec := func(text string) bson.Number { return decimal(t, text) }
	add, sub, mul := bson.Number.Add, bson.Number.Sub, bson.Number.Mul
	for _, c := range []struct {
		name     string
		op       func(n, m bson.Number) (bson.Number, bool)
		n, m     bson.Number
		want     bson.Number
		overflow bool
	}{
		{"int32 + int32", add, bson.Int32(1), bson.Int32(2), bson.Int32(3), false},
		{"int32 + int32 that needs 33 bits", add, bson.Int32(math.MaxInt32), bson.Int32(1), bson.Int64(1 << 31), false},
		{"int64 + int32 stays int64", add, bson.Int64(1), bson.Int32(2), bson.Int64(3), false},
		{"int64 + int64 that overflows", add, bson.Int64(math.MaxInt64), bson.Int64(1), bson.Double(1 << 63), true},
		{"int64 + int64 that overflows downwards", add, bson.Int64(math.MinInt64), bson.Int64(-1), bson.Double(-1 << 63), true},
		{"int64 + 0", add, bson.Int64(math.MinInt64), bson.Int64(0), bson.Int64(math.MinInt64), false},
		{"int32 + double", add, bson.Int32(1), bson.Double(0.5), bson.Double(1.5), false},
		{"double + decimal", add, bson.Double(0.1), dec("0.2"), dec("0.300000000000000"), false},
		{"int64 + decimal", add, bson.Int64(1 << 53), dec("0.1"), dec("9007199254740992.1"), false},
		{"int32 - int32 that needs 33 bits", sub, bson.Int32(math.MinInt32), bson.Int32(1), bson.Int64(math.MinInt32 - 1), false},
		{"int64 - int64 that overflows", sub, bson.Int64(math.MinInt64), bson.Int64(1), bson.Double(-1 << 63), true},
		{"0 - least int64", sub, bson.Int64(0), bson.Int64(math.MinInt64), bson.Double(1 << 63), true},
		{"int32 · int32 that needs 62 bits", mul, bson.Int32(math.MaxInt32), bson.Int32(math.MaxInt32), bson.Int64(4611686014132420609), false},
		{"int64 · int64 that overflows", mul, bson.Int64(1 << 62), bson.Int32(2), bson.Double(1 << 63), true},
		{"int64 · int64 to the least", mul, bson.Int64(1 << 62), bson.Int32(-2), bson.Int64(math.MinInt64), false},
		{"decimal · int32", mul, dec("1.50"), bson.Int32(2), dec("3.00"), false},
		{"decimal overflow", mul, dec("9E+6144"), bson.Int32(10), dec("Infinity"), false},
	} {
		got, overflow := c.op(c.n, c.m)
		if got != c.want || overflow != c.overflow {
			t.Errorf("%s: %s (type %s, overflow %v), want %s (type %s, overflow %v)", c.name, got, got.Type(), overflow, c.want, c.want.Type(), c.overflow)
		}
	}
}

func TestDecimalText(t *testing.T) {
	for text, want := range map[string]string{
		"1.50": "1.50", "-0": "-0", "1E3": "1E+3", "Infinity": "Infinity", "-inf": "-Infinity", "nan": "NaN",
		"1E+6144":                              "1.000000000000000000000000000000000E+6144",
		"1E+6145":                              "Infinity",
		"1E-6176":                              "1E-6176",
		"5E-6177":                              "0E-6176",
		"6E-6177":                              "1E-6176",
		"12345678901234567890123456789012345":  "1.234567890123456789012345678901234E+34",
		"12345678901234567890123456789012355":  "1.234567890123456789012345678901236E+34",
		"0E+9999":                              "0E+6111",
		"9999999999999999999999999999999999.9": "1.000000000000000000000000000000000E+34",
	} {
		n, err := bson.ParseDecimal(text)
		if err != nil || n.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, n, err, want)
		}
	}
	for _, text := range []string{"", "x", "1e", "1.2.3", "0x10", " 1", "1_000"} {
		if n, err := bson.ParseDecimal(text); err == nil {
			t.Errorf("%q is read as %s", text, n)
		}
	}
}

func TestDoubleToDecimal(t *testing.T) {
	for f, want := range map[float64]string{
		0.1: "0.100000000000000", 2.5: "2.50000000000000", 0: "0", 1e300: "1.00000000000000E+300",
		123456789.123456789: "123456789.123457", math.Inf(-1): "-Infinity", math.NaN(): "NaN",
	} {
		if got := bson.Double(f).Decimal().String(); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}

func TestWideDecimal(t *testing.T) {
	for f, want := range map[float64]string{
		0.1: "0.1000000000000000055511151231257827", 2.5: "2.5", 100: "100", 0: "0", -1e20: "-100000000000000000000",
		1e300: "1.00000000000000005250476025520442E+300", math.Inf(1): "Infinity",
	} {
		if got := bson.Double(f).WideDecimal(); got.String() != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := bson.Int64(math.MaxInt64).WideDecimal(); got.String() != "9223372036854775807" {
		t.Errorf("the greatest int64: %s", got)
	}
}
