package query

import (
	"slices"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// elementAt returns the element at index i, counted from the end if negative; missing beyond either end.
func elementAt(array []byte, i int) bson.Value {
	if i < 0 {
		if i += countElements(array); i < 0 {
			return bson.Value{}
		}
	}
	it := bson.Elements(array)
	for it.Next() {
		if i == 0 {
			return it.Value()
		}
		i--
	}
	return bson.Value{}
}

func evalArrayElemAt(_ *Scratch, a, i bson.Value) (bson.Value, error) {
	if nullish(a) || nullish(i) {
		return bson.Null, nil
	}
	if a.Type != bson.TypeArray {
		return a, mongoerr.New(28689, "$arrayElemAt's first argument must be an array, but is %s", bson.TypeName(a.Type))
	}
	if !bson.IsNumber(i.Type) {
		return i, mongoerr.New(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", bson.TypeName(i.Type))
	}
	at, ok := whole32(i)
	if !ok {
		return i, mongoerr.New(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", show(i))
	}
	return elementAt(a.Data, at), nil
}

// end is $first and $last of an array.
func end(name string, at int) builder {
	return unary(func(_ *Scratch, v bson.Value) (bson.Value, error) {
		if nullish(v) {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(28689, "%s's argument must be an array, but is %s", name, bson.TypeName(v.Type))
		}
		return elementAt(v.Data, at), nil
	})
}

func evalSize(s *Scratch, v bson.Value) (bson.Value, error) {
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(17124, "The argument to $size must be an array, but was of type: %s", bson.TypeName(v.Type))
	}
	return s.int32(int32(countElements(v.Data))), nil
}

func evalIsArray(_ *Scratch, v bson.Value) (bson.Value, error) {
	return boolean(v.Type == bson.TypeArray), nil
}

func evalSlice(s *Scratch, args []bson.Value) (bson.Value, error) {
	if nullish(args[0]) || nullish(args[1]) {
		return bson.Null, nil
	}
	if args[0].Type != bson.TypeArray {
		return args[0], mongoerr.New(28724, "First argument to $slice must be an array, but is of type: %s", bson.TypeName(args[0].Type))
	}
	if !bson.IsNumber(args[1].Type) {
		return args[1], mongoerr.New(28725, "Second argument to $slice must be a numeric value, but is of type: %s", bson.TypeName(args[1].Type))
	}
	n, ok := whole32(args[1])
	if !ok {
		return args[1], mongoerr.New(28726, "Second argument to $slice can't be represented as a 32-bit integer: %s", show(args[1]))
	}
	mark := len(s.stack)
	size := s.pushElements(args[0].Data)
	from, to := 0, size
	switch {
	case len(args) == 3:
		count, null, err := sliceCount(args[2])
		if err != nil || null {
			s.stack = s.stack[:mark]
			return bson.Null, err
		}
		if from = min(n, size); n < 0 {
			from = max(0, size+n)
		}
		to = min(from+count, size)
	case n >= 0:
		to = min(n, size)
	default:
		from = max(0, size+n)
	}
	v, err := s.array(s.stack[mark+from : mark+to])
	s.stack = s.stack[:mark]
	return v, err
}

func sliceCount(v bson.Value) (n int, null bool, err error) {
	if nullish(v) {
		return 0, true, nil
	}
	if !bson.IsNumber(v.Type) {
		return 0, false, mongoerr.New(28727, "Third argument to $slice must be numeric, but is of type: %s", bson.TypeName(v.Type))
	}
	n, ok := whole32(v)
	if !ok {
		return 0, false, mongoerr.New(28728, "Third argument to $slice can't be represented as a 32-bit integer: %s", show(v))
	}
	if n <= 0 {
		return 0, false, mongoerr.New(28729, "Third argument to $slice must be positive: %d", n)
	}
	return n, false, nil
}

func evalConcatArrays(s *Scratch, args []bson.Value) (bson.Value, error) {
	mark := len(s.stack)
	for _, v := range args {
		if nullish(v) {
			s.stack = s.stack[:mark]
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(28664, "$concatArrays only supports arrays, not %s", bson.TypeName(v.Type))
		}
		s.pushElements(v.Data)
	}
	return s.popArray(mark)
}

func evalIn(_ *Scratch, v, array bson.Value) (bson.Value, error) {
	if array.Type != bson.TypeArray {
		return v, mongoerr.New(40081, "$in requires an array as a second argument, found: %s", bson.TypeName(array.Type))
	}
	it := bson.Elements(array.Data)
	for it.Next() {
		if compareValues(v, it.Value()) == 0 {
			return valueTrue, nil
		}
	}
	return valueFalse, nil
}

// inNode is $in.
type inNode struct{ value, array node }

func (n *inNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.value.eval(s)
	if err != nil {
		return v, err
	}
	array, err := n.array.eval(s)
	if err != nil {
		return array, err
	}
	return evalIn(s, v, array)
}

func buildIn(c *compiler, name string, arg bson.Value) (node, error) {
	of, err := c.arguments(name, arg, 2, 2)
	if err != nil {
		return nil, err
	}
	return &inNode{of[0], of[1]}, nil
}

func evalIndexOfArray(s *Scratch, args []bson.Value) (bson.Value, error) {
	if nullish(args[0]) {
		return bson.Null, nil
	}
	if args[0].Type != bson.TypeArray {
		return args[0], mongoerr.New(40090, "$indexOfArray requires an array as a first argument, found: %s", bson.TypeName(args[0].Type))
	}
	from, to, err := searchRange("$indexOfArray", args[2:], countElements(args[0].Data))
	if err != nil {
		return args[0], err
	}
	it := bson.Elements(args[0].Data)
	for i := 0; i < to && it.Next(); i++ {
		if i >= from && compareValues(it.Value(), args[1]) == 0 {
			return s.int32(int32(i)), nil
		}
	}
	return s.int32(-1), nil
}

func evalReverseArray(s *Scratch, v bson.Value) (bson.Value, error) {
	if nullish(v) {
		return bson.Null, nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(34435, "The argument to $reverseArray must be an array, but was of type: %s", bson.TypeName(v.Type))
	}
	mark := len(s.stack)
	s.pushElements(v.Data)
	slices.Reverse(s.stack[mark:])
	return s.popArray(mark)
}

func evalRange(s *Scratch, args []bson.Value) (bson.Value, error) {
	step := 1
	var bounds [3]int
	for i, v := range args {
		what, article := []string{"starting", "ending", "step"}[i], []string{"a", "an", "a"}[i]
		if !bson.IsNumber(v.Type) {
			return v, mongoerr.New(mongoerr.Code(34443+2*i), "$range requires a numeric %s value, found value of type: %s", what, bson.TypeName(v.Type))
		}
		n, ok := whole32(v)
		if !ok {
			return v, mongoerr.New(mongoerr.Code(34444+2*i), "$range requires %s %s value that can be represented as a 32-bit integer, found value: %s", article, what, show(v))
		}
		bounds[i] = n
	}
	if len(args) == 3 {
		if step = bounds[2]; step == 0 {
			return args[2], mongoerr.New(34449, "$range requires a non-zero step value")
		}
	}
	return s.integers(bounds[0], bounds[1], step)
}

// integers builds the array from, from+step, … below to (above it, if step is negative).
func (s *Scratch) integers(from, to, step int) (bson.Value, error) {
	n := 0
	if step > 0 && from < to {
		n = (to - from + step - 1) / step
	} else if step < 0 && from > to {
		n = (from - to - step - 1) / -step
	}
	size := maxScratch + 1
	if n < maxScratch/16 {
		size = 5 + n*(6+digits(n))
	}
	dst, err := s.grab(size)
	if err != nil {
		return bson.Value{}, err
	}
	dst = append(dst, 0, 0, 0, 0)
	for i := range n {
		if err := s.step(); err != nil {
			return bson.Value{}, err
		}
		v := from + i*step
		dst = append(dst, byte(bson.TypeInt32))
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, 0, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	dst = append(dst, 0)
	size = len(dst)
	dst[0], dst[1], dst[2], dst[3] = byte(size), byte(size>>8), byte(size>>16), byte(size>>24)
	return bson.Value{Type: bson.TypeArray, Data: dst}, nil
}

// zipNode is $zip.
type zipNode struct {
	inputs, defaults []node
	longest          bool
}

func (n *zipNode) eval(s *Scratch) (bson.Value, error) {
	iters := make([]bson.Iter, len(n.inputs))
	shortest, longest := -1, 0
	for i, of := range n.inputs {
		v, err := of.eval(s)
		if err != nil || nullish(v) {
			return bson.Null, err
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(34468, "$zip found a non-array expression in input: %s", show(v))
		}
		size := countElements(v.Data)
		if shortest < 0 || size < shortest {
			shortest = size
		}
		longest = max(longest, size)
		iters[i] = bson.Elements(v.Data)
	}
	rows := shortest
	fill := make([]bson.Value, len(n.inputs))
	if n.longest {
		rows = longest
		for i, of := range n.defaults {
			var err error
			if fill[i], err = of.eval(s); err != nil {
				return bson.Null, err
			}
		}
	}
	mark := len(s.stack)
	for range rows {
		row := len(s.stack)
		for i := range iters {
			v := fill[i]
			if iters[i].Next() {
				v = iters[i].Value()
			}
			s.push(v)
		}
		v, err := s.popArray(row)
		if err != nil {
			return v, err
		}
		s.push(v)
	}
	return s.popArray(mark)
}

func buildZip(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(34460, "$zip only supports an object as an argument, found %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(34464, "$zip found an unknown argument: %s", f)
	}, "inputs", "defaults", "useLongestLength")
	if err != nil {
		return nil, err
	}
	n := &zipNode{}
	for i, p := range []string{"inputs", "defaults"} {
		v, ok := args[p]
		if !ok {
			continue
		}
		if v.Type != bson.TypeArray {
			return nil, mongoerr.New(mongoerr.Code(34461+i), "%s must be an array of expressions, found %s", p, bson.TypeName(v.Type))
		}
		of, err := c.compileAll(v.Data)
		if err != nil {
			return nil, err
		}
		*[]*[]node{&n.inputs, &n.defaults}[i] = of
	}
	if v, ok := args["useLongestLength"]; ok {
		if v.Type != bson.TypeBoolean {
			return nil, mongoerr.New(34463, "useLongestLength must be a bool, found %s", bson.TypeName(v.Type))
		}
		n.longest = Truth(v)
	}
	switch {
	case len(n.inputs) == 0:
		return nil, mongoerr.New(34465, "$zip requires at least one input array")
	case len(n.defaults) > 0 && !n.longest:
		return nil, mongoerr.New(34466, "cannot specify defaults unless useLongestLength is true")
	case len(n.defaults) > 0 && len(n.defaults) != len(n.inputs):
		return nil, mongoerr.New(34467, "defaults and inputs must have the same length")
	}
	return n, nil
}
