package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// isTrue is the truth of an operand such as that of $exists: all but false, zero, null and undefined.
func isTrue(v bson.Value) bool {
	switch v.Type {
	case bson.TypeNull, bson.TypeUndefined, 0:
		return false
	case bson.TypeBoolean:
		return len(v.Data) > 0 && v.Data[0] != 0
	}
	if n, ok := bson.NumberOf(v); ok {
		return !n.IsZero()
	}
	return true
}

// integerOperand returns an operand that must be an integer, or the reason why it is none, worded as MongoDB does.
func integerOperand(name string, v bson.Value) (n int64, reason string) {
	number, ok := bson.NumberOf(v)
	if !ok {
		return 0, "Expected a number in: " + elementText(name, v)
	}
	if number.IsNaN() && v.Type == bson.TypeDouble {
		return 0, "Expected an integer, but found NaN in: " + elementText(name, v)
	}
	if n, ok = number.Int64(); ok {
		return n, ""
	}
	if _, inRange := number.TruncInt64(); inRange && v.Type == bson.TypeDouble {
		return 0, "Expected an integer: " + elementText(name, v)
	}
	return 0, "Cannot represent as a 64-bit integer: " + elementText(name, v)
}

// naturalOperand is integerOperand for an operand that may not be negative.
func naturalOperand(name string, v bson.Value) (n int64, reason string) {
	n, reason = integerOperand(name, v)
	if reason == "" && n < 0 {
		return 0, "Expected a non-negative number in: " + elementText(name, v)
	}
	return n, reason
}

// membership compiles $in, and what $nin negates.
func membership(path bson.Path, name string, v bson.Value) (Node, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "%s needs an array", name)
	}
	in := &In{Path: path}
	it := bson.Elements(v.Data)
	for it.Next() {
		e := it.Value()
		switch {
		case isOperatorDocument(e, false):
			return nil, mongoerr.New(mongoerr.BadValue, "cannot nest $ under %s", name)
		case e.Type == bson.TypeUndefined:
			return nil, mongoerr.New(mongoerr.BadValue, "InMatchExpression equality cannot be undefined")
		case e.Type == bson.TypeRegex:
			r, err := regexValue(path, e)
			if err != nil {
				return nil, err
			}
			in.Regexes = append(in.Regexes, r.(*Regex))
		default:
			in.Values = append(in.Values, e)
		}
	}
	slices.SortStableFunc(in.Values, bson.Compare)
	in.Values = slices.CompactFunc(in.Values, bson.Equal)
	return in, nil
}

// typesByName maps the aliases of $type (https://www.mongodb.com/docs/manual/reference/bson-types/).
var typesByName = func() map[string]bson.Type {
	names := map[string]bson.Type{}
	for t := range 256 {
		if typeKnown(bson.Type(t)) {
			names[bson.TypeName(bson.Type(t))] = bson.Type(t)
		}
	}
	return names
}()

// typeKnown reports whether t is a type of BSON.
func typeKnown(t bson.Type) bool {
	switch t {
	case bson.TypeMinKey, bson.TypeMaxKey:
		return true
	}
	return t >= bson.TypeDouble && t <= bson.TypeDecimal128
}

var numberTypes = []bson.Type{bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128}

// typeTest compiles $type of a name, a number or an array of both.
func typeTest(path bson.Path, v bson.Value) (Node, error) {
	n := &Type{Path: path}
	operands := []bson.Value{v}
	if v.Type == bson.TypeArray {
		operands = arrayValues(v.Data)
	}
	for _, o := range operands {
		types, err := typesOf(o)
		if err != nil {
			return nil, err
		}
		n.Types = append(n.Types, types...)
	}
	if len(n.Types) == 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$type must match at least one type")
	}
	slices.Sort(n.Types)
	n.Types = slices.Compact(n.Types)
	return n, nil
}

// typesOf returns the types that a name or a number of $type stands for.
func typesOf(v bson.Value) ([]bson.Type, error) {
	if name, ok := stringOf(v); ok && v.Type == bson.TypeString {
		if name == "number" {
			return numberTypes, nil
		}
		if t, ok := typesByName[name]; ok {
			return []bson.Type{t}, nil
		}
		return nil, mongoerr.New(mongoerr.BadValue, "Unknown type name alias: %s", name)
	}
	number, ok := bson.NumberOf(v)
	if !ok {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "type must be represented as a number or a string")
	}
	code, ok := number.Int64()
	switch {
	case ok && code == -1:
		return []bson.Type{bson.TypeMinKey}, nil
	case ok && code > 0 && code <= math.MaxInt8 && typeKnown(bson.Type(code)):
		return []bson.Type{bson.Type(code)}, nil
	case ok && code == 0:
		return nil, mongoerr.New(mongoerr.BadValue, "Invalid numerical type code: 0. Instead use {$exists:false}.")
	}
	return nil, mongoerr.New(mongoerr.BadValue, "Invalid numerical type code: %s", number)
}

// modulus compiles $mod; both numbers lose their fraction, as in MongoDB since 5.1.
func modulus(path bson.Path, v bson.Value) (Node, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "malformed mod, needs to be an array")
	}
	var numbers [2]int64
	operands := arrayValues(v.Data)
	for i, name := range []string{"divisor", "remainder"} {
		if i >= len(operands) {
			return nil, mongoerr.New(mongoerr.BadValue, "malformed mod, not enough elements")
		}
		number, ok := bson.NumberOf(operands[i])
		if !ok {
			return nil, mongoerr.New(mongoerr.BadValue, "malformed mod, %s not a number", name)
		}
		reason := "Out of bounds coercing to integral value"
		if number.IsNaN() || number.IsInf() {
			reason = "Unable to coerce NaN/Inf to integral type"
		}
		if numbers[i], ok = number.TruncInt64(); !ok {
			return nil, mongoerr.New(mongoerr.BadValue, "malformed mod, %s value is invalid :: caused by :: %s", name, reason)
		}
	}
	switch {
	case len(operands) > 2:
		return nil, mongoerr.New(mongoerr.BadValue, "malformed mod, too many elements")
	case numbers[0] == 0:
		return nil, mongoerr.New(mongoerr.BadValue, "divisor cannot be 0")
	}
	return &Mod{Path: path, Divisor: numbers[0], Remainder: numbers[1]}, nil
}

func size(path bson.Path, v bson.Value) (Node, error) {
	n, reason := naturalOperand("$size", v)
	if reason == "" && n > math.MaxInt32 {
		reason = "Cannot represent " + elementText("$size", v) + " in an int"
	}
	if reason != "" {
		return nil, mongoerr.New(mongoerr.BadValue, "Failed to parse $size. %s", reason)
	}
	return &Size{Path: path, N: n}, nil
}

// nearBits bounds the positions that a mask of bytes holds; a few bytes of a filter must not cost megabytes.
const nearBits = 1 << 12

// bitTest compiles the four bit operators, of a mask as a number or binary data, or of an array of positions.
func bitTest(path bson.Path, name string, v bson.Value) (Node, error) {
	n := &Bits{Path: path, Op: name}
	switch {
	case v.Type == bson.TypeArray:
		for _, e := range arrayValues(v.Data) {
			position, err := bitPosition(e)
			if err != nil {
				return nil, err
			}
			n.add(position)
		}
	case v.Type == bson.TypeBinary && len(v.Data) >= 5:
		n.Mask = v.Data[5:]
	case bson.IsNumber(v.Type):
		mask, reason := naturalOperand(name, v)
		if reason != "" {
			return nil, mongoerr.New(mongoerr.FailedToParse, "%s", reason)
		}
		for ; mask != 0; mask >>= 8 {
			n.Mask = append(n.Mask, byte(mask))
		}
	default:
		return nil, mongoerr.New(mongoerr.BadValue, "%s takes an Array, a number, or a BinData but received: %s", name, elementText(name, v))
	}
	return n, nil
}

// add puts a position into the mask.
func (n *Bits) add(position uint32) {
	if position >= nearBits {
		n.Far = append(n.Far, position)
		return
	}
	for int(position/8) >= len(n.Mask) {
		n.Mask = append(n.Mask, 0)
	}
	n.Mask[position/8] |= 1 << (position % 8)
}

// bitPosition reads one position of a bit operator's array.
func bitPosition(v bson.Value) (uint32, error) {
	number, ok := bson.NumberOf(v)
	i, whole := number.Int64()
	text := valueText(v)
	switch {
	case ok && number.IsNaN():
		return 0, mongoerr.New(mongoerr.BadValue, "bit positions cannot take a NaN: %s", text)
	case ok && (number.Compare(bson.Int32(math.MaxInt32)) > 0 || number.Compare(bson.Int32(math.MinInt32)) < 0):
		return 0, mongoerr.New(mongoerr.BadValue, "bit positions cannot be represented as a 32-bit signed integer: %s", text)
	case !ok || !whole:
		return 0, mongoerr.New(mongoerr.BadValue, "bit positions must be an integer but got: %s", text)
	case i < 0:
		return 0, mongoerr.New(mongoerr.BadValue, "bit positions must be >= 0 but got: %s", text)
	}
	return uint32(i), nil
}

// regexDocument compiles $regex with its $options, which may stand on either side of it.
func regexDocument(path bson.Path, doc bson.Document) (Node, error) {
	var pattern, options string
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "$regex":
			switch v.Type {
			case bson.TypeString:
				pattern, _ = stringOf(v)
			case bson.TypeRegex:
				p, o, _ := v.RegexOK()
				if o != "" && options != "" {
					return nil, mongoerr.New(mongoerr.RegexOptionsTwice, "options set in both $regex and $options")
				}
				pattern = p
				if o != "" {
					options = o
				}
			default:
				return nil, mongoerr.New(mongoerr.BadValue, "$regex has to be a string")
			}
		case "$options":
			o, ok := stringOf(v)
			if !ok || v.Type != bson.TypeString {
				return nil, mongoerr.New(mongoerr.BadValue, "$options has to be a string")
			}
			if options != "" {
				return nil, mongoerr.New(mongoerr.OptionsAndRegexOptions, "options set in both $regex and $options")
			}
			options = o
		}
	}
	return regexPredicate(path, pattern, options)
}

// regexValue compiles {path: /pattern/options}.
func regexValue(path bson.Path, v bson.Value) (Node, error) {
	pattern, options, ok := v.RegexOK()
	if !ok {
		return nil, mongoerr.New(mongoerr.BadValue, "not a regex")
	}
	return regexPredicate(path, pattern, options)
}

func regexPredicate(path bson.Path, pattern, options string) (Node, error) {
	r, err := NewRegex(path, pattern, options)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// quoted shows a regular expression in messages.
func quoted(pattern, options string) string {
	if len(pattern) > 200 {
		pattern = strings.ToValidUTF8(pattern[:200], "") + "…"
	}
	return fmt.Sprintf("/%s/%s", pattern, strings.Trim(strconv.Quote(options), `"`))
}
