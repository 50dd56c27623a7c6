package bson

// Compare orders two values as MongoDB does: by type class first, then within the class
// (https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/). The four numeric types compare by exact
// numeric value, NaN below every number; strings and symbols by bytes; documents element by element: type class, then key, then
// value; arrays element by element as documents. Undefined counts as null. The result is -1, 0 or 1.
//
// It is the order of two whole values. Sorting documents by a path takes the least or greatest array element first:
// see query.Sort.
func Compare(a, b Value) int { panic("unbuilt") }

// Equal reports whether Compare gives 0.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }

// Class returns the rank of a type among the classes of the comparison order: two types of one class compare by value.
// Query comparisons ($lt and the like) match only within a class ("type bracketing").
func Class(t Type) int { panic("unbuilt") }
