package query

import (
	"slices"
	"sync"

	"oxbow/internal/bson"
)

// Match reports whether doc satisfies the filter. Only $expr and a regular expression that needs backtracking can fail.
func (f *Filter) Match(doc bson.Document) (bool, error) {
	ok, _, err := f.MatchAt(doc)
	return ok, err
}

// MatchAt is Match that also reports the index of the array element that the positional operator $ stands for: the element that
// the last array-traversing predicate matched, or -1.
func (f *Filter) MatchAt(doc bson.Document) (ok bool, index int, err error) {
	if f.root == nil {
		return true, -1, nil
	}
	return f.root.match(doc)
}

// tester is a predicate on one value.
type tester interface {
	test(v bson.Value) (bool, error)
}

// find looks for a value at path that t accepts. A missing field is a value of Type 0. With expand, elements of an array at
// the path's end are tried before the array.
func find(path bson.Path, doc []byte, expand bool, t tester) (ok bool, index int, err error) {
	if parts := path.Parts(); len(parts) == 1 {
		v, _ := bson.Get(doc, parts[0])
		if v.Type != bson.TypeArray || !expand {
			ok, err = t.test(v)
			return ok, -1, err
		}
	}
	index = -1
	path.Walk(doc, expand, func(v bson.Value, _, _ bool, at int) bool {
		if ok, err = t.test(v); ok {
			index = at
		}
		return !ok && err == nil
	})
	return ok, index, err
}

func (n *And) match(doc []byte) (bool, int, error) {
	index := -1
	for _, c := range n.Of {
		ok, at, err := c.match(doc)
		if !ok || err != nil {
			return false, -1, err
		}
		if at >= 0 {
			index = at
		}
	}
	return true, index, nil
}

func (n *And) test(v bson.Value) (bool, error) {
	for _, c := range n.Of {
		if ok, err := c.test(v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (n *Or) match(doc []byte) (bool, int, error) {
	for _, c := range n.Of {
		if ok, at, err := c.match(doc); ok || err != nil {
			return ok, at, err
		}
	}
	return false, -1, nil
}

func (n *Or) test(v bson.Value) (bool, error) {
	for _, c := range n.Of {
		if ok, err := c.test(v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (n *Nor) match(doc []byte) (bool, int, error) {
	for _, c := range n.Of {
		if ok, _, err := c.match(doc); ok || err != nil {
			return false, -1, err
		}
	}
	return true, -1, nil
}

func (n *Nor) test(v bson.Value) (bool, error) {
	for _, c := range n.Of {
		if ok, err := c.test(v); ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (n *Compare) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

func (n *Compare) test(v bson.Value) (bool, error) {
	if bson.Class(v.Type) != bson.Class(n.Value.Type) {
		return n.crosses(v), nil
	}
	if n.Op == Eq {
		return bson.Equal(v, n.Value), nil
	}
	// NaN is equal to NaN, and neither less nor greater than any number.
	if a, ok := bson.NumberOf(v); ok {
		if b, _ := bson.NumberOf(n.Value); a.IsNaN() != b.IsNaN() {
			return false, nil
		}
	}
	c := bson.Compare(v, n.Value)
	switch n.Op {
	case Lt:
		return c < 0, nil
	case Lte:
		return c <= 0, nil
	case Gt:
		return c > 0, nil
	default:
		return c >= 0, nil
	}
}

// crosses is the comparison with a value of another class: null equals a missing field, and everything is between MinKey and MaxKey.
func (n *Compare) crosses(v bson.Value) bool {
	switch n.Value.Type {
	case bson.TypeNull:
		return v.Type == 0 && (n.Op == Eq || n.Op == Lte || n.Op == Gte)
	case bson.TypeMinKey:
		return n.Op == Gt || n.Op == Gte
	case bson.TypeMaxKey:
		return n.Op == Lt || n.Op == Lte
	}
	return false
}

func (n *In) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

func (n *In) test(v bson.Value) (bool, error) {
	if v.Type == 0 {
		v = bson.Null
	}
	if _, ok := slices.BinarySearchFunc(n.Values, v, bson.Compare); ok {
		return true, nil
	}
	for _, r := range n.Regexes {
		if ok, err := r.test(v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (n *Exists) match(doc []byte) (bool, int, error) {
	ok, index, err := find(n.Path, doc, true, present{})
	if !n.Want {
		return !ok, -1, err
	}
	return ok, index, err
}

func (n *Exists) test(v bson.Value) (bool, error) { return (v.Type != 0) == n.Want, nil }

// present accepts every value that there is.
type present struct{}

func (present) test(v bson.Value) (bool, error) { return v.Type != 0, nil }

func (n *Type) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

func (n *Type) test(v bson.Value) (bool, error) {
	return v.Type != 0 && slices.Contains(n.Types, v.Type), nil
}

func (n *Mod) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

func (n *Mod) test(v bson.Value) (bool, error) {
	number, ok := bson.NumberOf(v)
	if !ok {
		return false, nil
	}
	i, ok := number.TruncInt64()
	return ok && i%n.Divisor == n.Remainder, nil
}

func (n *Size) match(doc []byte) (bool, int, error) { return find(n.Path, doc, false, n) }

func (n *Size) test(v bson.Value) (bool, error) {
	return v.Type == bson.TypeArray && int64(countElements(v.Data)) == n.N, nil
}

func (n *ElemMatch) match(doc []byte) (ok bool, index int, err error) {
	index = -1
	n.Path.Walk(doc, false, func(v bson.Value, _, _ bool, at int) bool {
		var inner int
		if ok, inner, err = n.element(v); ok {
			index = at
			if at < 0 {
				index = inner
			}
		}
		return !ok && err == nil
	})
	return ok, index, err
}

func (n *ElemMatch) test(v bson.Value) (bool, error) {
	ok, _, err := n.element(v)
	return ok, err
}

// element looks for an element of the array v that satisfies Of.
func (n *ElemMatch) element(v bson.Value) (ok bool, index int, err error) {
	if v.Type != bson.TypeArray {
		return false, -1, nil
	}
	it := bson.Elements(v.Data)
	for index = 0; it.Next(); index++ {
		e := it.Value()
		switch {
		case !n.Object:
			ok, err = n.Of.test(e)
		case e.Type == bson.TypeDocument || e.Type == bson.TypeArray:
			ok, _, err = n.Of.match(e.Data)
		}
		if ok || err != nil {
			return ok, index, err
		}
	}
	return false, -1, nil
}

// scratches holds memory for $expr between documents.
var scratches = sync.Pool{New: func() any { return new(Scratch) }}

func (n *Expr) match(doc []byte) (bool, int, error) {
	s := scratches.Get().(*Scratch)
	defer scratches.Put(s)
	v, err := n.Expression.Eval(doc, s)
	if err != nil {
		return false, -1, err
	}
	return Truth(v), -1, nil
}

// test is never reached: $expr is refused under $elemMatch.
func (n *Expr) test(v bson.Value) (bool, error) {
	ok, _, err := n.match(v.Data)
	return ok, err
}

func (n *Bits) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

func (n *Bits) test(v bson.Value) (bool, error) {
	if v.Type == bson.TypeBinary {
		if len(v.Data) < 5 {
			return false, nil
		}
		return n.relation(v.Data[5:], 0), nil
	}
	number, ok := bson.NumberOf(v)
	if !ok {
		return false, nil
	}
	i, ok := number.Int64()
	if !ok {
		return false, nil
	}
	var bits [8]byte
	for b := range bits {
		bits[b] = byte(i >> (8 * b))
	}
	return n.relation(bits[:], byte(i>>63)), nil
}

// relation tests the mask on bits that go on with the byte beyond for ever.
func (n *Bits) relation(bits []byte, beyond byte) bool {
	set, clear := false, false // whether some bit of the mask is so
	at := func(i int) byte {
		if i < len(bits) {
			return bits[i]
		}
		return beyond
	}
	for i, m := range n.Mask {
		set = set || at(i)&m != 0
		clear = clear || ^at(i)&m != 0
	}
	for _, p := range n.Far {
		m := byte(1) << (p % 8)
		set = set || at(int(p/8))&m != 0
		clear = clear || ^at(int(p/8))&m != 0
	}
	switch n.Op {
	case "$bitsAllSet":
		return !clear
	case "$bitsAllClear":
		return !set
	case "$bitsAnySet":
		return set
	default:
		return clear
	}
}
