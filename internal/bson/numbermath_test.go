package bson_test

import (
	"math"
	"testing"

	"oxbow/internal/bson"
)

// decimal reads a Decimal128 that the test knows to be one.
func decimal(t *testing.T, text string) bson.Number {
	t.Helper()
	n, err := bson.ParseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRoundAndTrunc(t *testing.T) {
	for _, c := range []struct {
		n              bson.Number
		places         int
		rounded, trunc bson.Number
	}{
		{bson.Double(2.5), 0, bson.Double(2), bson.Double(2)},
		{bson.Double(-3.5), 0, bson.Double(-4), bson.Double(-3)},
		{bson.Double(12.345678), 2, bson.Double(12.35), bson.Double(12.34)},
		{bson.Double(1250), -2, bson.Double(1200), bson.Double(1200)},
		{bson.Double(1e300), 2, bson.Double(1e300), bson.Double(1e300)},
		{bson.Double(math.Inf(1)), 2, bson.Double(math.Inf(1)), bson.Double(math.Inf(1))},
		{bson.Int32(1250), 3, bson.Int32(1250), bson.Int32(1250)},
		{bson.Int32(1350), -2, bson.Int32(1400), bson.Int32(1300)},
		{bson.Int32(49), -2, bson.Int32(0), bson.Int32(0)},
		{bson.Int32(math.MaxInt32), -1, bson.Int64(2147483650), bson.Int32(2147483640)},
		{bson.Int64(1350), -2, bson.Int64(1400), bson.Int64(1300)},
		{decimal(t, "12.345"), 2, decimal(t, "12.34"), decimal(t, "12.34")},
		{decimal(t, "12.355"), 2, decimal(t, "12.36"), decimal(t, "12.35")},
		{decimal(t, "1E+100"), 2, decimal(t, "1E+100"), decimal(t, "1E+100")},
		{decimal(t, "NaN"), 2, decimal(t, "NaN"), decimal(t, "NaN")},
	} {
		if got, overflow := c.n.Round(c.places); got != c.rounded || overflow {
			t.Errorf("%s rounded to %d places: %s (type %s, overflow %v), want %s", c.n, c.places, got, got.Type(), overflow, c.rounded)
		}
		if got, overflow := c.n.Trunc(c.places); got != c.trunc || overflow {
			t.Errorf("%s cut to %d places: %s (type %s, overflow %v), want %s", c.n, c.places, got, got.Type(), overflow, c.trunc)
		}
	}
	if got, overflow := bson.Int64(math.MaxInt64).Round(-1); !overflow || got != bson.Double(1<<63) {
		t.Errorf("the greatest int64 rounded to tens: %s, overflow %v", got, overflow)
	}
}

func TestFloorCeilAbsNeg(t *testing.T) {
	for _, c := range []struct{ n, floor, ceil bson.Number }{
		{bson.Double(-1.5), bson.Double(-2), bson.Double(-1)},
		{decimal(t, "-1.5"), decimal(t, "-2"), decimal(t, "-1")},
		{decimal(t, "Infinity"), decimal(t, "Infinity"), decimal(t, "Infinity")},
		{bson.Int64(7), bson.Int64(7), bson.Int64(7)},
	} {
		if f, up := c.n.Floor(), c.n.Ceil(); f.Compare(c.floor) != 0 || up.Compare(c.ceil) != 0 || f.Type() != c.n.Type() {
			t.Errorf("%s: floor %s, ceil %s", c.n, f, up)
		}
	}
	if n, overflow := bson.Int32(math.MinInt32).Abs(); n != bson.Int64(1<<31) || overflow {
		t.Errorf("the least int32's magnitude is %s, overflow %v", n, overflow)
	}
	if n, overflow := bson.Int64(math.MinInt64).Abs(); n != bson.Double(1<<63) || !overflow {
		t.Errorf("the least int64's magnitude is %s, overflow %v", n, overflow)
	}
	if n, _ := decimal(t, "-1.50").Abs(); n != decimal(t, "1.50") {
		t.Errorf("-1.50's magnitude is %s", n)
	}
}

func TestQuotientsAndRemainders(t *testing.T) {
	for _, c := range []struct{ n, m, quotient, remainder bson.Number }{
		{bson.Int32(7), bson.Int32(2), bson.Double(3.5), bson.Int32(1)},
		{bson.Int32(-7), bson.Int64(2), bson.Double(-3.5), bson.Int64(-1)},
		{bson.Double(7.5), bson.Int32(2), bson.Double(3.75), bson.Double(1.5)},
		{decimal(t, "1"), bson.Int32(3), decimal(t, "0.3333333333333333333333333333333333"), decimal(t, "1")},
		{decimal(t, "-7.5"), bson.Int32(2), decimal(t, "-3.75"), decimal(t, "-1.5")},
		{bson.Int64(math.MinInt64), bson.Int64(-1), bson.Double(1 << 63), bson.Int64(0)},
	} {
		if q, r := c.n.Div(c.m), c.n.Mod(c.m); q != c.quotient || r != c.remainder {
			t.Errorf("%s by %s: %s rest %s (types %s, %s), want %s rest %s", c.n, c.m, q, r, q.Type(), r.Type(), c.quotient, c.remainder)
		}
	}
}

func TestPowersAndRoots(t *testing.T) {
	for _, c := range []struct{ n, m, want bson.Number }{
		{bson.Int32(2), bson.Int32(10), bson.Int32(1024)},
		{bson.Int32(2), bson.Int32(31), bson.Int64(1 << 31)},
		{bson.Int64(2), bson.Int32(3), bson.Int64(8)},
		{bson.Int32(2), bson.Int32(63), bson.Double(1 << 63)},
		{bson.Int32(-2), bson.Int32(63), bson.Int64(math.MinInt64)},
		{bson.Int32(2), bson.Int32(-1), bson.Double(0.5)},
		{bson.Int32(-1), bson.Int64(math.MaxInt64), bson.Int64(-1)},
		{bson.Int32(0), bson.Int64(math.MaxInt64), bson.Int64(0)},
		{bson.Int32(0), bson.Int32(0), bson.Int32(1)},
		{bson.Double(2), bson.Int32(3), bson.Double(8)},
		{decimal(t, "1.5"), bson.Int32(2), decimal(t, "2.25")},
	} {
		if got := c.n.Pow(c.m); got.Compare(c.want) != 0 || got.Type() != c.want.Type() {
			t.Errorf("%s to the power %s: %s (type %s), want %s", c.n, c.m, got, got.Type(), c.want)
		}
	}
	if got := decimal(t, "2").Sqrt().String(); got != "1.414213562373095048801688724209698" {
		t.Errorf("the decimal root of 2 is %s", got)
	}
	if got := bson.Int32(9).Sqrt(); got != bson.Double(3) {
		t.Errorf("the root of 9 is %s", got)
	}
	if got := decimal(t, "1000").Log10(); got.Compare(bson.Int32(3)) != 0 {
		t.Errorf("the logarithm of 1000 is %s", got)
	}
	if got := decimal(t, "1").Exp().String(); got != "2.718281828459045235360287471352662" {
		t.Errorf("e is %s", got)
	}
	if got := decimal(t, "1").Ln(); !got.IsZero() {
		t.Errorf("the natural logarithm of 1 is %s", got)
	}
}
