package query

import (
	"bytes"
	"encoding/binary"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// arithmetic is $inc and $mul.
type arithmetic struct {
	operand  bson.Number
	multiply bool
}

func (o arithmetic) name() string {
	if o.multiply {
		return "$mul"
	}
	return "$inc"
}

func (o arithmetic) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if !bson.IsNumber(old.Type) {
		return dst, old.Type, kept, mongoerr.New(mongoerr.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s",
			o.name(), idText(ap.doc), ap.name(), bson.TypeName(old.Type))
	}
	was, _ := bson.NumberOf(old)
	n, overflow := o.compute(was)
	if overflow {
		return dst, old.Type, kept, mongoerr.New(mongoerr.BadValue, "Failed to apply %s operations to current value (%s) for document {%s}",
			o.name(), numberText(was), idText(ap.doc))
	}
	if n == was {
		return dst, old.Type, kept, nil
	}
	return n.Append(dst), n.Type(), written, nil
}

func (o arithmetic) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	n := o.operand
	if o.multiply {
		n, _ = n.Mul(bson.Int32(0))
	}
	return n.Append(dst), n.Type(), written, nil
}

func (o arithmetic) compute(n bson.Number) (result bson.Number, overflow bool) {
	if o.multiply {
		return n.Mul(o.operand)
	}
	return n.Add(o.operand)
}

func (o arithmetic) creates(*applier) (bool, error) { return true, nil }
func (o arithmetic) blocked() blockage              { return cannotCreate }

func parseArithmetic(path string, v bson.Value, multiply bool) (fieldOperator, error) {
	if n, ok := bson.NumberOf(v); ok {
		return arithmetic{operand: n, multiply: multiply}, nil
	}
	verb := "increment"
	if multiply {
		verb = "multiply"
	}
	return nil, mongoerr.New(mongoerr.TypeMismatch, "Cannot %s with non-numeric argument: {%s}", verb, elementText(path, v))
}

// numberText renders a number with its type, as MongoDB's messages about arithmetic do.
func numberText(n bson.Number) string {
	switch n.Type() {
	case bson.TypeInt32:
		return "(NumberInt)" + n.String()
	case bson.TypeInt64:
		return "(NumberLong)" + n.String()
	case bson.TypeDouble:
		return "(NumberDouble)" + n.String()
	}
	return "(NumberDecimal)" + n.String()
}

// minMax is $min and $max: sign is -1 for $min.
type minMax struct {
	setField
	sign int
}

func (o minMax) change(_ *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if bson.Compare(o.value, old) != o.sign {
		return dst, old.Type, kept, nil
	}
	return append(dst, o.value.Data...), o.value.Type, written, nil
}

// bitwise is $bit.
type bitwise struct{ steps []bitStep }

type bitStep struct {
	operator byte // '&', '|' or '^'
	operand  int64
	long     bool // the operand is an int64
}

func (o bitwise) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if old.Type != bson.TypeInt32 && old.Type != bson.TypeInt64 {
		return dst, old.Type, kept, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s",
			idText(ap.doc), ap.name(), bson.TypeName(old.Type))
	}
	mark := len(dst)
	out, t := o.compute(dst, old)
	if t == old.Type && bytes.Equal(out[mark:], old.Data) {
		return dst, old.Type, kept, nil
	}
	return out, t, written, nil
}

func (o bitwise) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	var zero [4]byte
	out, t := o.compute(dst, bson.Value{Type: bson.TypeInt32, Data: zero[:]})
	return out, t, written, nil
}

func (o bitwise) compute(dst []byte, old bson.Value) ([]byte, bson.Type) {
	n, long := integerBits(old)
	for _, step := range o.steps {
		switch step.operator {
		case '&':
			n &= step.operand
		case '|':
			n |= step.operand
		default:
			n ^= step.operand
		}
		long = long || step.long
	}
	if long {
		return appendUint64(dst, uint64(n)), bson.TypeInt64
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n)), bson.TypeInt32
}

func (o bitwise) creates(*applier) (bool, error) { return true, nil }
func (o bitwise) blocked() blockage              { return cannotCreate }

// integerBits returns an integer, and whether it is an int64.
func integerBits(v bson.Value) (n int64, long bool) {
	if v.Type == bson.TypeInt64 {
		n, _ := v.Int64OK()
		return n, true
	}
	i, _ := v.Int32OK()
	return int64(i), false
}

// parseBit compiles {$bit: {path: {and | or | xor: integer, …}}}.
func parseBit(v bson.Value) (fieldOperator, error) {
	if v.Type != bson.TypeDocument {
		return nil, mongoerr.New(mongoerr.BadValue,
			"The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}", bson.TypeName(v.Type))
	}
	var o bitwise
	it := bson.Elements(v.Data)
	for it.Next() {
		operators := map[string]byte{"and": '&', "or": '|', "xor": '^'}
		operator, ok := operators[string(it.Key())]
		if !ok {
			return nil, mongoerr.New(mongoerr.BadValue,
				"The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s}",
				it.Key(), elementText(string(it.Key()), it.Value()))
		}
		operand := it.Value()
		if operand.Type != bson.TypeInt32 && operand.Type != bson.TypeInt64 {
			return nil, mongoerr.New(mongoerr.BadValue,
				"The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s}",
				bson.TypeName(operand.Type), elementText(string(it.Key()), operand))
		}
		n, long := integerBits(operand)
		o.steps = append(o.steps, bitStep{operator: operator, operand: n, long: long})
	}
	if len(o.steps) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue,
			"You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return o, nil
}
