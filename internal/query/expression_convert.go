package query

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// convertNode is $convert and its short forms.
type convertNode struct {
	input, to, onError, onNull node
}

func (n *convertNode) eval(s *Scratch) (bson.Value, error) {
	to, err := n.to.eval(s)
	if err != nil {
		return to, err
	}
	v, err := n.input.eval(s)
	if err != nil {
		return v, err
	}
	target := bson.Type(0)
	if !nullish(to) {
		if target, err = targetType(to); err != nil {
			return v, err
		}
	}
	switch {
	case nullish(v) && n.onNull != nil:
		return n.onNull.eval(s)
	case nullish(v) || nullish(to):
		return bson.Null, nil
	}
	out, err := s.convert(v, target)
	if err != nil && n.onError != nil && mongoerr.Is(err, mongoerr.ConversionFailure) {
		return n.onError.eval(s)
	}
	return out, err
}

// convertible are the types that $convert converts to, by name.
var convertible = map[string]bson.Type{
	"double": bson.TypeDouble, "string": bson.TypeString, "objectId": bson.TypeObjectID, "bool": bson.TypeBoolean,
	"date": bson.TypeDateTime, "int": bson.TypeInt32, "long": bson.TypeInt64, "decimal": bson.TypeDecimal128,
}

func targetType(v bson.Value) (bson.Type, error) {
	if v.Type == bson.TypeString {
		name := textOf(v)
		if t, ok := convertible[name]; ok {
			return t, nil
		}
		for t := range 256 {
			if bson.TypeName(bson.Type(t)) == name {
				return bson.Type(t), nil
			}
		}
		return 0, mongoerr.New(mongoerr.BadValue, "Unknown type name: %s", name)
	}
	if !bson.IsNumber(v.Type) {
		return 0, mongoerr.New(mongoerr.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s", bson.TypeName(v.Type))
	}
	i, ok := whole32(v)
	if !ok {
		return 0, mongoerr.New(mongoerr.FailedToParse, "In $convert, numeric 'to' argument is not an integer")
	}
	if i != int(int8(i)) && i != 127 || i != 0 && bson.TypeName(bson.Type(i)) == "" {
		return 0, mongoerr.New(mongoerr.FailedToParse, "In $convert, numeric value for 'to' does not correspond to a BSON type: %d", i)
	}
	return bson.Type(i), nil
}

func buildConvert(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(mongoerr.FailedToParse, "$convert expects an object of named arguments but found: %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(mongoerr.FailedToParse, "$convert found an unknown argument: %s", f)
	}, "input", "to", "onError", "onNull")
	if err != nil {
		return nil, err
	}
	n := &convertNode{}
	if err := c.optionals(args, map[string]*node{"input": &n.input, "to": &n.to, "onError": &n.onError, "onNull": &n.onNull}); err != nil {
		return nil, err
	}
	if n.input == nil {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Missing 'input' parameter to $convert")
	}
	if n.to == nil {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Missing 'to' parameter to $convert")
	}
	return n, nil
}

// conversion is $toInt and the like.
func conversion(t bson.Type) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		if arg.Type == bson.TypeArray {
			if n := countElements(arg.Data); n != 1 {
				return nil, mongoerr.New(50723, "%s requires a single argument, got %d", name, n)
			}
		}
		return unary(func(s *Scratch, v bson.Value) (bson.Value, error) {
			if nullish(v) {
				return bson.Null, nil
			}
			return s.convert(v, t)
		})(c, name, arg)
	}
}

func failed(format string, args ...any) error {
	return mongoerr.New(mongoerr.ConversionFailure, format, args...)
}

// convert converts a value that is not null. What can't be converted is ConversionFailure (241).
func (s *Scratch) convert(v bson.Value, to bson.Type) (bson.Value, error) {
	if v.Type == to && (to == bson.TypeDouble || convertible[bson.TypeName(v.Type)] == to) {
		return v, nil
	}
	if to == bson.TypeBoolean {
		return boolean(Truth(v)), nil
	}
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return s.convertNumber(v, to)
	case bson.TypeString:
		return s.convertString(v, to)
	case bson.TypeBoolean:
		switch to {
		case bson.TypeString:
			return s.text(strconv.AppendBool(nil, Truth(v)))
		case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
			return s.convertNumber(s.int32(int32(v.Data[0])), to)
		}
	case bson.TypeDateTime:
		switch to {
		case bson.TypeString:
			return s.text([]byte(isoText(intOf(v))))
		case bson.TypeDouble, bson.TypeInt64, bson.TypeDecimal128:
			return s.convertNumber(s.int64(intOf(v)), to)
		}
	case bson.TypeObjectID:
		switch to {
		case bson.TypeString:
			return s.text([]byte(hex.EncodeToString(v.Data)))
		case bson.TypeDateTime:
			return s.date(int64(binary.BigEndian.Uint32(v.Data)) * 1000), nil
		}
	case bson.TypeTimestamp:
		if to == bson.TypeDateTime {
			return s.date(timestampSeconds(v) * 1000), nil
		}
	}
	return v, errUnsupported(v, to)
}

func errUnsupported(v bson.Value, to bson.Type) error {
	return failed("Unsupported conversion from %s to %s in $convert with no onError value", bson.TypeName(v.Type), bson.TypeName(to))
}

func (s *Scratch) convertNumber(v bson.Value, to bson.Type) (bson.Value, error) {
	n, _ := bson.NumberOf(v)
	switch to {
	case v.Type:
		return v, nil
	case bson.TypeString:
		if v.Type == bson.TypeDouble {
			return s.text([]byte(formatDouble(doubleOf(v))))
		}
		return s.text([]byte(n.String()))
	case bson.TypeDecimal128:
		return s.number(n.Decimal()), nil
	case bson.TypeDouble:
		f := n.Float64()
		if math.IsInf(f, 0) && !n.IsInf() {
			return v, errOverflow(v)
		}
		return s.double(f), nil
	case bson.TypeDateTime:
		if v.Type == bson.TypeInt32 {
			return v, errUnsupported(v, to)
		}
		i, err := integerOf(v, n)
		return s.date(i), err
	case bson.TypeInt64:
		i, err := integerOf(v, n)
		return s.int64(i), err
	case bson.TypeInt32:
		i, err := integerOf(v, n)
		if err == nil && i != int64(int32(i)) {
			err = errOverflow(v)
		}
		return s.int32(int32(i)), err
	}
	return v, errUnsupported(v, to)
}

func errOverflow(v bson.Value) error {
	return failed("Conversion would overflow target type in $convert with no onError value: %s", show(v))
}

func integerOf(v bson.Value, n bson.Number) (int64, error) {
	i, ok := n.TruncInt64()
	switch {
	case n.IsNaN():
		return 0, failed("Attempt to convert NaN value to integer type in $convert with no onError value")
	case n.IsInf():
		return 0, failed("Attempt to convert infinity value to integer type in $convert with no onError value")
	case !ok:
		return 0, errOverflow(v)
	}
	return i, nil
}

func (s *Scratch) convertString(v bson.Value, to bson.Type) (bson.Value, error) {
	text := textOf(v)
	fail := func(reason string) error {
		return failed("Failed to parse number '%s' in $convert with no onError value: %s", text, reason)
	}
	if bson.IsNumber(to) && strings.HasPrefix(strings.ToLower(text), "0x") {
		return v, failed("Illegal hexadecimal input in $convert with no onError value: %s", text)
	}
	switch to {
	case bson.TypeInt32, bson.TypeInt64:
		size := 32
		if to == bson.TypeInt64 {
			size = 64
		}
		i, err := strconv.ParseInt(text, 10, size)
		switch {
		case text == "":
			return v, fail("No digits")
		case err != nil && isRange(err):
			return v, fail("Overflow")
		case err != nil:
			return v, fail("Did not consume whole string.")
		case to == bson.TypeInt32:
			return s.int32(int32(i)), nil
		}
		return s.int64(i), nil
	case bson.TypeDouble:
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case text == "":
			return v, fail("Empty string")
		case err != nil && isRange(err):
			return v, fail("Out of range")
		case err != nil || strings.Contains(text, "_"):
			return v, fail("Did not consume whole string.")
		}
		return s.double(f), nil
	case bson.TypeDecimal128:
		n, err := bson.ParseDecimal(text)
		if err != nil {
			return v, fail("Failed to parse string to decimal")
		}
		return s.number(n), nil
	case bson.TypeObjectID:
		id, err := hex.DecodeString(text)
		if err != nil || len(id) != 12 {
			return v, failed("Failed to parse objectId '%s' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found %d", text, len(text))
		}
		return bson.Value{Type: to, Data: append(s.grabSmall(12), id...)}, nil
	case bson.TypeDateTime:
		millis, err := parseDate(text, nil)
		return s.date(millis), err
	}
	return v, errUnsupported(v, to)
}

func isRange(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}

func timestampSeconds(v bson.Value) int64 { return int64(binary.LittleEndian.Uint32(v.Data[4:])) }

func timestampText(v bson.Value) string {
	return fmt.Sprintf("Timestamp(%d, %d)", timestampSeconds(v), binary.LittleEndian.Uint32(v.Data))
}

func evalType(s *Scratch, v bson.Value) (bson.Value, error) {
	return s.text([]byte(bson.TypeName(v.Type)))
}

func evalIsNumber(_ *Scratch, v bson.Value) (bson.Value, error) {
	return boolean(bson.IsNumber(v.Type)), nil
}
