package query

import "oxbow/internal/bson"

// Expression is a compiled aggregation expression.
type Expression struct{}

// ParseExpression compiles an expression: literals, "$field.path", "$$variable", and the operators that are built; others are
// refused by name with InvalidPipelineOperator (168).
func ParseExpression(v bson.Value, env Env) (*Expression, error) { panic("unbuilt") }

// Eval computes the expression on a document. A missing result has Type 0. The value may alias doc or scratch memory of the call, and is good
// until the next Eval with the same Scratch.
func (e *Expression) Eval(doc bson.Document, s *Scratch) (bson.Value, error) { panic("unbuilt") }

// Constant returns the value of an expression that depends on no document.
func (e *Expression) Constant() (bson.Value, bool) { panic("unbuilt") }

// Conjuncts returns plain predicates that the expression implies where it is used as a filter ($eq, $lt, … of a path and a constant under $and), so that
// $expr can route and use indexes; mind that in expressions comparison crosses types and missing sorts below null.
func (e *Expression) Conjuncts() []Node { panic("unbuilt") }

// Scratch is memory that one evaluation after another reuses; not for concurrent use. The zero value is ready.
type Scratch struct{ buf []byte }

// Truth reports whether an expression's result counts as true: all but false, null, missing, undefined and zero.
func Truth(v bson.Value) bool { panic("unbuilt") }
