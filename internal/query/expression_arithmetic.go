package query

import (
	"math/bits"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func evalAdd(s *Scratch, args []bson.Value) (bson.Value, error) {
	var t summation
	haveDate, haveNull := false, false
	for _, v := range args {
		switch {
		case t.add(v):
		case v.Type == bson.TypeDateTime:
			if haveDate {
				return v, mongoerr.New(16612, "only one date allowed in an $add expression")
			}
			haveDate = true
			t.addInt(intOf(v))
		case nullish(v):
			haveNull = true
		default:
			return v, mongoerr.New(16554, "$add only supports numeric or date types, not %s", bson.TypeName(v.Type))
		}
		if haveNull {
			return bson.Null, nil
		}
	}
	if haveDate {
		return s.shifted(&t, "$add")
	}
	return t.result(s), nil
}

// shifted makes a date of a sum of milliseconds.
func (s *Scratch) shifted(t *summation, name string) (bson.Value, error) {
	millis, ok := t.integer()
	switch t.kind {
	case bson.TypeDecimal128:
		millis, ok = t.total().TruncInt64()
	case bson.TypeDouble:
		f := t.float()
		millis, ok = int64(f), f >= -1<<63 && f < 1<<63
	}
	if !ok {
		return bson.Null, mongoerr.New(mongoerr.Overflow, "date overflow in %s", name)
	}
	return s.date(millis), nil
}

func evalSubtract(s *Scratch, a, b bson.Value) (bson.Value, error) {
	switch {
	case bson.IsNumber(a.Type) && bson.IsNumber(b.Type):
		return s.difference(a, b), nil
	case nullish(a) || nullish(b):
		return bson.Null, nil
	case a.Type != bson.TypeDateTime:
		return a, mongoerr.New(16556, "can't $subtract %s from %s", bson.TypeName(b.Type), bson.TypeName(a.Type))
	case b.Type == bson.TypeDateTime:
		d := intOf(a) - intOf(b)
		if (intOf(a) < intOf(b)) != (d < 0) {
			return a, mongoerr.New(mongoerr.Overflow, "date overflow in $subtract")
		}
		return s.int64(d), nil
	case bson.IsNumber(b.Type):
		var t summation
		t.addInt(intOf(a))
		n, _ := bson.NumberOf(b)
		minus, _ := n.Neg()
		t.add(s.number(minus))
		return s.shifted(&t, "$subtract")
	}
	return a, mongoerr.New(16613, "can't $subtract %s from Date", bson.TypeName(b.Type))
}

func (s *Scratch) difference(a, b bson.Value) bson.Value {
	x, _ := bson.NumberOf(a)
	y, _ := bson.NumberOf(b)
	d, _ := x.Sub(y)
	return s.number(d)
}

func evalMultiply(s *Scratch, args []bson.Value) (bson.Value, error) {
	product, whole := 1.0, int64(1)
	var decimal bson.Number
	kind := 0
	for _, v := range args {
		if nullish(v) {
			return bson.Null, nil
		}
		if !bson.IsNumber(v.Type) {
			return v, mongoerr.New(16555, "$multiply only supports numeric types, not %s", bson.TypeName(v.Type))
		}
		was := kind
		kind = max(kind, rank(v.Type))
		if kind == 3 {
			switch {
			case was == 2:
				decimal = bson.Double(product)
			case was < 2:
				decimal = bson.Int64(whole)
			}
			n, _ := bson.NumberOf(v)
			decimal, _ = decimal.Decimal().Mul(n.Decimal())
			continue
		}
		product *= floatOf(v)
		if kind < 2 {
			var ok bool
			if whole, ok = multiplied(whole, intOf(v)); !ok {
				kind = 2
			}
		}
	}
	switch kind {
	case 3:
		return s.number(decimal), nil
	case 2:
		return s.double(product), nil
	case 1:
		return s.int64(whole), nil
	}
	return s.intOrLong(whole), nil
}

// multiplied returns a·b, and false if it does not fit.
func multiplied(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), lo <= 1<<63
	}
	return int64(lo), lo < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func evalDivide(s *Scratch, a, b bson.Value) (bson.Value, error) {
	if !bson.IsNumber(a.Type) || !bson.IsNumber(b.Type) {
		if nullish(a) || nullish(b) {
			return bson.Null, nil
		}
		return a, mongoerr.New(16609, "$divide only supports numeric types, not %s and %s", bson.TypeName(a.Type), bson.TypeName(b.Type))
	}
	x, _ := bson.NumberOf(a)
	y, _ := bson.NumberOf(b)
	if y.IsZero() {
		return a, mongoerr.New(mongoerr.BadValue, "can't $divide by zero")
	}
	return s.number(x.Div(y)), nil
}

func evalMod(s *Scratch, a, b bson.Value) (bson.Value, error) {
	if !bson.IsNumber(a.Type) || !bson.IsNumber(b.Type) {
		if nullish(a) || nullish(b) {
			return bson.Null, nil
		}
		return a, mongoerr.New(16611, "$mod only supports numeric types, not %s and %s", bson.TypeName(a.Type), bson.TypeName(b.Type))
	}
	x, _ := bson.NumberOf(a)
	y, _ := bson.NumberOf(b)
	if y.IsZero() {
		return a, mongoerr.New(16610, "can't $mod by zero")
	}
	if i, whole := y.Int64(); whole && y.Type() == bson.TypeDouble && x.Type() != bson.TypeDouble {
		y = bson.Int64(i) // a whole double counts as an integer here
		if i == int64(int32(i)) {
			y = bson.Int32(int32(i))
		}
	}
	return s.number(x.Mod(y)), nil
}

// numeric makes an operator of a function of one number: null for null, an error for what is no number.
func numeric(name string, apply func(s *Scratch, v bson.Value) (bson.Value, error)) builder {
	return unary(func(s *Scratch, v bson.Value) (bson.Value, error) {
		if nullish(v) {
			return bson.Null, nil
		}
		if !bson.IsNumber(v.Type) {
			return v, mongoerr.New(28765, "%s only supports numeric types, not %s", name, bson.TypeName(v.Type))
		}
		return apply(s, v)
	})
}

func evalAbs(s *Scratch, v bson.Value) (bson.Value, error) {
	n, _ := bson.NumberOf(v)
	abs, overflow := n.Abs()
	if overflow {
		return v, mongoerr.New(28680, "can't take $abs of long long min")
	}
	return s.number(abs), nil
}

// toWhole is $ceil and $floor.
func toWhole(apply func(bson.Number) bson.Number) func(s *Scratch, v bson.Value) (bson.Value, error) {
	return func(s *Scratch, v bson.Value) (bson.Value, error) {
		n, _ := bson.NumberOf(v)
		return s.number(apply(n)), nil
	}
}

// toPlaces is $round and $trunc: a number and the digits to keep after the point, from -20 to 100.
func toPlaces(name string, apply func(n bson.Number, places int) (bson.Number, bool)) func(s *Scratch, args []bson.Value) (bson.Value, error) {
	return func(s *Scratch, args []bson.Value) (bson.Value, error) {
		v := args[0]
		if nullish(v) {
			return bson.Null, nil
		}
		if !bson.IsNumber(v.Type) {
			return v, mongoerr.New(51081, "%s only supports numeric types, not %s", name, bson.TypeName(v.Type))
		}
		places := int64(0)
		if len(args) == 2 {
			if nullish(args[1]) {
				return bson.Null, nil
			}
			var ok bool
			if places, ok = wholeNumber(args[1]); !ok {
				return v, mongoerr.New(51082, "precision argument to  %s must be a integral value", name)
			}
			if places < -20 || places > 100 {
				return v, mongoerr.New(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", name, places)
			}
		}
		n, _ := bson.NumberOf(v)
		out, overflow := apply(n, int(places))
		if overflow {
			return v, mongoerr.New(51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]", name, n, places)
		}
		return s.number(out), nil
	}
}

func evalSqrt(s *Scratch, v bson.Value) (bson.Value, error) {
	n, _ := bson.NumberOf(v)
	if n.Sign() < 0 {
		return v, mongoerr.New(28714, "$sqrt's argument must be greater than or equal to 0")
	}
	return s.number(n.Sqrt()), nil
}

func evalExp(s *Scratch, v bson.Value) (bson.Value, error) {
	n, _ := bson.NumberOf(v)
	return s.number(n.Exp()), nil
}

// logarithm is $ln and $log10.
func logarithm(name string, code mongoerr.Code, log func(bson.Number) bson.Number) builder {
	return numeric(name, func(s *Scratch, v bson.Value) (bson.Value, error) {
		n, _ := bson.NumberOf(v)
		if n.Sign() <= 0 && !n.IsNaN() {
			return v, mongoerr.New(code, "%s's argument must be a positive number, but is %s", name, n)
		}
		return s.number(log(n)), nil
	})
}

func evalLog(s *Scratch, a, b bson.Value) (bson.Value, error) {
	if nullish(a) || nullish(b) {
		return bson.Null, nil
	}
	if !bson.IsNumber(a.Type) {
		return a, mongoerr.New(28756, "$log's argument must be numeric, not %s", bson.TypeName(a.Type))
	}
	if !bson.IsNumber(b.Type) {
		return a, mongoerr.New(28757, "$log's base must be numeric, not %s", bson.TypeName(b.Type))
	}
	x, _ := bson.NumberOf(a)
	base, _ := bson.NumberOf(b)
	if x.Sign() <= 0 && !x.IsNaN() {
		return a, mongoerr.New(28758, "$log's argument must be a positive number, but is %s", x)
	}
	if base.Sign() <= 0 && !base.IsNaN() || base.Compare(bson.Int32(1)) == 0 {
		return a, mongoerr.New(28759, "$log's base must be a positive number not equal to 1, but is %s", base)
	}
	if base.Type() == bson.TypeDecimal128 {
		x = x.Decimal()
	} else if x.Type() == bson.TypeDecimal128 {
		base = base.Decimal()
	}
	return s.number(x.Ln().Div(base.Ln())), nil
}

func evalPow(s *Scratch, a, b bson.Value) (bson.Value, error) {
	if nullish(a) || nullish(b) {
		return bson.Null, nil
	}
	if !bson.IsNumber(a.Type) {
		return a, mongoerr.New(28762, "$pow's base must be numeric, not %s", bson.TypeName(a.Type))
	}
	if !bson.IsNumber(b.Type) {
		return a, mongoerr.New(28763, "$pow's exponent must be numeric, not %s", bson.TypeName(b.Type))
	}
	base, _ := bson.NumberOf(a)
	exp, _ := bson.NumberOf(b)
	if base.IsZero() && exp.Sign() < 0 {
		return a, mongoerr.New(28764, "$pow cannot take a base of 0 and a negative exponent")
	}
	return s.number(base.Pow(exp)), nil
}
