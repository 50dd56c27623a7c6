package query

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// pushSet puts an array's elements on the stack, sorted and without repeats, and returns them.
func (s *Scratch) pushSet(array []byte) []bson.Value {
	mark := len(s.stack)
	s.pushElements(array)
	set := distinctSorted(s.stack[mark:])
	s.stack = s.stack[:mark+len(set)]
	return s.stack[mark : mark+len(set) : mark+len(set)]
}

func distinctSorted(values []bson.Value) []bson.Value {
	slices.SortStableFunc(values, compareValues)
	return slices.CompactFunc(values, func(a, b bson.Value) bool { return compareValues(a, b) == 0 })
}

func inSorted(set []bson.Value, v bson.Value) bool {
	_, found := slices.BinarySearchFunc(set, v, compareValues)
	return found
}

func evalSetUnion(s *Scratch, args []bson.Value) (bson.Value, error) {
	mark := len(s.stack)
	for _, v := range args {
		if nullish(v) {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17043, "All operands of $setUnion must be arrays. One argument is of type: %s", bson.TypeName(v.Type))
		}
		s.pushElements(v.Data)
	}
	return s.array(distinctSorted(s.stack[mark:]))
}

func evalSetIntersection(s *Scratch, args []bson.Value) (bson.Value, error) {
	var common []bson.Value
	for i, v := range args {
		if nullish(v) {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17047, "All operands of $setIntersection must be arrays. One argument is of type: %s", bson.TypeName(v.Type))
		}
		set := s.pushSet(v.Data)
		if i == 0 {
			common = set
			continue
		}
		common = slices.DeleteFunc(common, func(v bson.Value) bool { return !inSorted(set, v) })
	}
	return s.array(common)
}

func evalSetDifference(s *Scratch, args []bson.Value) (bson.Value, error) {
	if nullish(args[0]) || nullish(args[1]) {
		return bson.Null, nil
	}
	for i, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(mongoerr.Code(17048+i), "both operands of $setDifference must be arrays. %s argument is of type: %s", []string{"First", "Second"}[i], bson.TypeName(v.Type))
		}
	}
	without := s.pushSet(args[1].Data)
	values := arrayValues(args[0].Data)
	order := make([]int, len(values)) // by value, equal ones in the order they stand in
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareValues(values[i], values[j]) })
	first := slices.CompactFunc(order, func(i, j int) bool { return compareValues(values[i], values[j]) == 0 })
	first = slices.DeleteFunc(first, func(i int) bool { return inSorted(without, values[i]) })
	slices.Sort(first)
	mark := len(s.stack)
	for _, i := range first {
		s.push(values[i])
	}
	return s.popArray(mark)
}

func evalSetEquals(s *Scratch, args []bson.Value) (bson.Value, error) {
	var first []bson.Value
	for i, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17044, "All operands of $setEquals must be arrays. One argument is of type: %s", bson.TypeName(v.Type))
		}
		set := s.pushSet(v.Data)
		if i == 0 {
			first = set
		} else if !slices.EqualFunc(first, set, func(a, b bson.Value) bool { return compareValues(a, b) == 0 }) {
			return valueFalse, nil
		}
	}
	return valueTrue, nil
}

func buildSetEquals(c *compiler, name string, arg bson.Value) (node, error) {
	of, err := c.arguments(name, arg, 0, unbounded)
	if err != nil {
		return nil, err
	}
	if len(of) < 2 {
		return nil, mongoerr.New(17045, "$setEquals needs at least two arguments had: %d", len(of))
	}
	return &naryNode{of, evalSetEquals}, nil
}

func evalSetIsSubset(s *Scratch, args []bson.Value) (bson.Value, error) {
	for i, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New([]mongoerr.Code{17046, 17042}[i], "both operands of $setIsSubset must be arrays. %s argument is of type: %s", []string{"First", "Second"}[i], bson.TypeName(v.Type))
		}
	}
	all := s.pushSet(args[1].Data)
	it := bson.Elements(args[0].Data)
	for it.Next() {
		if !inSorted(all, it.Value()) {
			return valueFalse, nil
		}
	}
	return valueTrue, nil
}

// elementsTrue is $anyElementTrue, with want true, and $allElementsTrue, with want false: whether no element decides otherwise.
func elementsTrue(name string, code mongoerr.Code, want bool) builder {
	return unary(func(_ *Scratch, v bson.Value) (bson.Value, error) {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(code, "%s's argument must be an array, but is %s", name, bson.TypeName(v.Type))
		}
		it := bson.Elements(v.Data)
		for it.Next() {
			if Truth(it.Value()) == want {
				return boolean(want), nil
			}
		}
		return boolean(!want), nil
	})
}
