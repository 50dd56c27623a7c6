package query

import (
	"slices"

	"oxbow/internal/bson"
)

// Expression is a compiled aggregation expression
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/). It keeps the bytes it was compiled from: they must not change.
type Expression struct {
	root   node
	slots  int
	fields []string
	whole  bool
	nests  bool // it can put values into arrays and documents
}

// node is one part of a compiled expression. It is immutable; what an evaluation changes is in the Scratch.
type node interface {
	eval(s *Scratch) (bson.Value, error)
}

// ParseExpression compiles an expression: literals, "$field.path", "$$variable", and the operators that are built; others are
// refused by name with InvalidPipelineOperator (168). What depends on no document is computed here, and an error in it is returned here, as
// MongoDB does.
func ParseExpression(v bson.Value, env Env) (*Expression, error) {
	c := compiler{env: env}
	root, err := c.compile(v)
	if err != nil {
		return nil, err
	}
	return c.expression(root), nil
}

func (c *compiler) expression(root node) *Expression {
	slices.Sort(c.fields)
	return &Expression{root: root, slots: c.slots, fields: slices.Compact(c.fields), whole: c.whole, nests: c.nests}
}

// Eval computes the expression on a document. A missing result has Type 0. The value may alias doc or scratch memory of the call, and is good
// until the next Eval with the same Scratch.
func (e *Expression) Eval(doc bson.Document, s *Scratch) (bson.Value, error) {
	s.reset(doc, e.slots)
	return e.root.eval(s)
}

// Constant returns the value of an expression that depends on no document.
func (e *Expression) Constant() (bson.Value, bool) {
	if c, ok := e.root.(constant); ok {
		return c.value, true
	}
	return bson.Value{}, false
}

// Fields returns the top-level fields that the expression reads, sorted, and false when it can read all of them ($$ROOT).
func (e *Expression) Fields() ([]string, bool) {
	if e.whole {
		return nil, false
	}
	return e.fields, true
}

// Truth reports whether an expression's result counts as true: all but false, null, missing, undefined and zero.
func Truth(v bson.Value) bool {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return false
	case bson.TypeBoolean:
		return v.Data[0] != 0
	case bson.TypeInt32, bson.TypeInt64:
		return intOf(v) != 0
	case bson.TypeDouble:
		return doubleOf(v) != 0
	case bson.TypeDecimal128:
		n, _ := bson.NumberOf(v)
		return !n.IsZero()
	}
	return true
}

// EvalLet computes the let document of a command: each field is an expression that depends on no document. The result is what Env.Let
// takes. A variable whose value is missing is there as undefined, which stands for missing.
func EvalLet(let bson.Document, env Env) (bson.Document, error) {
	c := compiler{env: env}
	var s Scratch
	var fields []field
	it := bson.Elements(let)
	for it.Next() {
		name := string(it.Key())
		if err := checkVariableName(name); err != nil {
			return nil, err
		}
		n, err := c.compile(it.Value())
		if err != nil {
			return nil, err
		}
		k, ok := n.(constant)
		if !ok {
			return nil, errLetNotConstant()
		}
		v := k.value
		if v.Type == 0 {
			v = bson.Value{Type: bson.TypeUndefined}
		}
		fields = append(fields, field{name, v})
	}
	v, err := s.document(fields)
	return v.Data, err
}
