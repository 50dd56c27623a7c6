package statement

import (
	"math"
	"math/big"
	"strings"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// field is one known field of a command whose form is T.
type field[T any] struct {
	name     string // with the command's, for errors
	bit      uint64 // tells repeated fields
	required bool
	set      func(name string, to *T, v bson.Value) error
}

// schema is a command's known fields.
type schema[T any] struct {
	command  string
	generic  genericNames
	fields   map[string]field[T]
	required uint64
}

// spec names a field while a schema is put together.
type spec[T any] struct {
	name     string
	required bool
	set      func(name string, to *T, v bson.Value) error
}

func newSchema[T any](command string, specs ...spec[T]) *schema[T] {
	s := &schema[T]{command: command, generic: newGenericNames(command), fields: make(map[string]field[T], len(specs))}
	for i, f := range specs {
		bit := uint64(1) << i
		s.fields[f.name] = field[T]{name: command + "." + f.name, bit: bit, required: f.required, set: f.set}
		if f.required {
			s.required |= bit
		}
	}
	return s
}

// parse fills to from body. The first element, the command's name, goes to first; generic fields go to g.
func (s *schema[T]) parse(body bson.Document, to *T, g *Generic, first func(v bson.Value) error) error {
	it := bson.Elements(body)
	if first != nil {
		if !it.Next() {
			return mongoerr.New(mongoerr.FailedToParse, "empty command document")
		}
		if err := first(it.Value()); err != nil {
			return err
		}
	}
	return s.rest(it, to, g)
}

func (s *schema[T]) rest(it bson.Iter, to *T, g *Generic) error {
	var seen uint64
	for it.Next() {
		f, ok := s.fields[string(it.Key())]
		if !ok {
			if g != nil {
				if known, err := g.set(s.generic, it.Key(), it.Value()); known || err != nil {
					if err != nil {
						return err
					}
					continue
				}
			}
			return mongoerr.New(mongoerr.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", s.command, it.Key())
		}
		if seen&f.bit != 0 {
			return mongoerr.New(mongoerr.IDLDuplicateField, "BSON field '%s.%s' is a duplicate field", s.command, it.Key())
		}
		seen |= f.bit
		if err := f.set(f.name, to, it.Value()); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return mongoerr.New(mongoerr.InvalidBSON, "%s: %s", s.command, err)
	}
	if missing := s.required &^ seen; missing != 0 {
		for name, f := range s.fields {
			if f.bit&missing != 0 {
				return mongoerr.New(mongoerr.IDLMissingField, "BSON field '%s.%s' is missing but a required field", s.command, name)
			}
		}
	}
	return nil
}

// wrongType is MongoDB's error for a field of another type than expected.
func wrongType(name string, v bson.Value, expected string) error {
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'",
		name, bson.TypeName(v.Type), expected)
}

// The setters below are the field types of MongoDB's command definitions. Null counts as absent where MongoDB says so.

func document[T any](at func(*T) *bson.Document) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error { return setDocument(at(to), name, v) }
}

func setDocument(to *bson.Document, name string, v bson.Value) error {
	switch v.Type {
	case bson.TypeDocument:
		*to = v.Data
	case bson.TypeNull:
	default:
		return wrongType(name, v, "object")
	}
	return nil
}

func array[T any](at func(*T) *bson.Array) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		if v.Type != bson.TypeArray {
			return wrongType(name, v, "array")
		}
		*at(to) = v.Data
		return nil
	}
}

func documents[T any](at func(*T) *[]bson.Document) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		if v.Type != bson.TypeArray {
			return wrongType(name, v, "array")
		}
		it := bson.Elements(v.Data)
		for it.Next() {
			if it.Value().Type != bson.TypeDocument {
				return wrongType(name+"."+string(it.Key()), it.Value(), "object")
			}
			*at(to) = append(*at(to), it.Value().Data)
		}
		return nil
	}
}

func text[T any](at func(*T) *string) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		s, ok := v.StringValueOK()
		if !ok {
			return wrongType(name, v, "string")
		}
		*at(to) = s
		return nil
	}
}

// boolean takes numbers for booleans, as MongoDB's lenient booleans do.
func boolean[T any](at func(*T) *bool) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		if v.Type == bson.TypeNull {
			return nil
		}
		b, err := lenientBool(name, v)
		*at(to) = b
		return err
	}
}

func lenientBool(name string, v bson.Value) (bool, error) {
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	if f, ok := v.AsFloat64OK(); ok {
		return f != 0, nil
	}
	return false, mongoerr.New(mongoerr.TypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected types '[bool, long, int, decimal, double]'",
		name, bson.TypeName(v.Type))
}

// count takes whole numbers of at least least, of any numeric type.
func count[T any](least int64, at func(*T) *int64) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		if v.Type == bson.TypeNull {
			return nil
		}
		n, err := wholeNumber(name, v)
		if err != nil {
			return err
		}
		if n < least {
			return mongoerr.New(mongoerr.IDLValueBelowMin, "BSON field '%s' value must be >= %d, actual value '%d'",
				name[strings.LastIndexByte(name, '.')+1:], least, n)
		}
		*at(to) = n
		return nil
	}
}

// wholeNumber reads a number of any type; old drivers and the shell send doubles for every number.
func wholeNumber(name string, v bson.Value) (int64, error) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return v.AsInt64(), nil
	case bson.TypeDouble:
		f := v.Double()
		if f != math.Trunc(f) || f < -(1<<63) || f >= 1<<63 {
			return 0, mongoerr.New(mongoerr.BadValue, "BSON field '%s' must be a whole number, got %v", name, f)
		}
		return int64(f), nil
	case bson.TypeDecimal128:
		return wholeDecimal(name, v)
	}
	return 0, mongoerr.New(mongoerr.TypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected types '[long, int, decimal, double]'",
		name, bson.TypeName(v.Type))
}

func wholeDecimal(name string, v bson.Value) (int64, error) {
	d := driver.NewDecimal128(v.Decimal128())
	digits, exp, err := d.BigInt()
	if err == nil && exp <= 0 && exp > -40 {
		var rest big.Int
		digits.QuoRem(digits, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-exp)), nil), &rest)
		if rest.Sign() == 0 && digits.IsInt64() {
			return digits.Int64(), nil
		}
	}
	return 0, mongoerr.New(mongoerr.BadValue, "BSON field '%s' must be a whole number of 64 bits, got %s", name, d)
}

// unsupported refuses a field that MongoDB has and Oxbow does not yet, unless it is set to what changes nothing.
func unsupported[T any](idle func(v bson.Value) bool) func(string, *T, bson.Value) error {
	return func(name string, _ *T, v bson.Value) error {
		if idle != nil && idle(v) {
			return nil
		}
		return mongoerr.New(mongoerr.CommandNotSupported, "'%s' is not supported yet", name)
	}
}

func isFalse(v bson.Value) bool {
	b, err := lenientBool("", v)
	return v.Type == bson.TypeNull || err == nil && !b
}

func isEmptyDocument(v bson.Value) bool {
	return v.Type == bson.TypeNull || v.Type == bson.TypeDocument && len(v.Data) == 5
}

// harmless accepts a field that only advises a server how to run the command.
func harmless[T any](string, *T, bson.Value) error { return nil }

// collectionName reads the command's own argument as a collection's name. Whoever knows the database, too, checks both.
func collectionName(v bson.Value) (string, error) {
	s, ok := v.StringValueOK()
	if !ok {
		return "", mongoerr.New(mongoerr.InvalidNamespace, "collection name has invalid type %s", bson.TypeName(v.Type))
	}
	return s, nil
}
