package query

import (
	"bytes"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// mapNode is $map.
type mapNode struct {
	input, in node
	slot      int
}

func (n *mapNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.input.eval(s)
	if err != nil || nullish(v) {
		return bson.Null, err
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(16883, "input to $map must be an array not %s", bson.TypeName(v.Type))
	}
	mark := len(s.stack)
	it := bson.Elements(v.Data)
	for it.Next() {
		if err := s.step(); err != nil {
			return v, err
		}
		s.vars[n.slot] = it.Value()
		out, err := n.in.eval(s)
		if err != nil {
			return out, err
		}
		s.push(out)
	}
	return s.popArray(mark)
}

func buildMap(c *compiler, name string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(16878, "$map only supports an object as its argument"), func(f string) error {
		return mongoerr.New(16879, "Unrecognized parameter to $map: %s", f)
	}, "input", "as", "in")
	if err != nil {
		return nil, err
	}
	n := &mapNode{}
	n.input, n.in, n.slot, err = c.iteration(name, args, "in", 16880, 16882)
	return n, err
}

// iteration compiles the input of $map or $filter, and its body with the element bound to the variable that as names. The codes are
// those of a missing input and a missing body.
func (c *compiler) iteration(name string, args map[string]bson.Value, body string, noInput, noBody mongoerr.Code) (input, in node, slot int, err error) {
	if input, err = c.optional(args, "input"); err != nil {
		return
	}
	v, ok := args[body]
	switch {
	case input == nil:
		return nil, nil, 0, mongoerr.New(noInput, "Missing 'input' parameter to %s", name)
	case !ok:
		return nil, nil, 0, mongoerr.New(noBody, "Missing '%s' parameter to %s", body, name)
	}
	as := "this"
	if v, ok := args["as"]; ok {
		if as = ""; v.Type == bson.TypeString {
			as = textOf(v)
		}
	}
	if err = checkVariableName(as); err != nil {
		return
	}
	outer := len(c.scope)
	slot = c.bind(as)
	in, err = c.compile(v)
	c.scope = c.scope[:outer]
	return
}

// filterNode is $filter.
type filterNode struct {
	input, cond, limit node
	slot               int
}

func (n *filterNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.input.eval(s)
	if err != nil || nullish(v) {
		return bson.Null, err
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(28651, "input to $filter must be an array not %s", bson.TypeName(v.Type))
	}
	limit := -1
	if n.limit != nil {
		if limit, err = n.most(s); err != nil {
			return v, err
		}
	}
	mark := len(s.stack)
	it := bson.Elements(v.Data)
	for limit != 0 && it.Next() {
		if err := s.step(); err != nil {
			return v, err
		}
		s.vars[n.slot] = it.Value()
		ok, err := n.cond.eval(s)
		if err != nil {
			return v, err
		}
		if Truth(ok) {
			s.push(it.Value())
			limit--
		}
	}
	return s.popArray(mark)
}

// most evaluates the limit; -1 is none.
func (n *filterNode) most(s *Scratch) (int, error) {
	v, err := n.limit.eval(s)
	if err != nil || nullish(v) {
		return -1, err
	}
	i, ok := whole32(v)
	if !ok {
		return 0, mongoerr.New(327391, "$filter: limit must be represented as a 32-bit integral value: %s", show(v))
	}
	if i <= 0 {
		return 0, mongoerr.New(327392, "$filter: limit must be greater than 0: %d", i)
	}
	return i, nil
}

func buildFilter(c *compiler, name string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(28646, "$filter only supports an object as its argument"), func(f string) error {
		return mongoerr.New(28647, "Unrecognized parameter to $filter: %s", f)
	}, "input", "as", "cond", "limit")
	if err != nil {
		return nil, err
	}
	n := &filterNode{}
	if n.limit, err = c.optional(args, "limit"); err != nil {
		return nil, err
	}
	n.input, n.cond, n.slot, err = c.iteration(name, args, "cond", 28648, 28650)
	return n, err
}

// reduceNode is $reduce.
type reduceNode struct {
	input, initial, in node
	this, value        int
}

func (n *reduceNode) eval(s *Scratch) (bson.Value, error) {
	input, err := n.input.eval(s)
	if err != nil || nullish(input) {
		return bson.Null, err
	}
	if input.Type != bson.TypeArray {
		return input, mongoerr.New(40080, "$reduce requires that 'input' be an array, found: %s", show(input))
	}
	v, err := n.initial.eval(s)
	if err != nil {
		return v, err
	}
	it := bson.Elements(input.Data)
	for it.Next() {
		if err := s.step(); err != nil {
			return v, err
		}
		s.vars[n.this], s.vars[n.value] = it.Value(), v
		if v, err = n.in.eval(s); err != nil {
			return v, err
		}
	}
	return v, nil
}

func buildReduce(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(40075, "$reduce requires an object as an argument, found: %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(40076, "$reduce found an unknown argument: %s", f)
	}, "input", "initialValue", "in")
	if err != nil {
		return nil, err
	}
	n := &reduceNode{}
	if n.input, err = c.optional(args, "input"); err != nil {
		return nil, err
	}
	if n.initial, err = c.optional(args, "initialValue"); err != nil {
		return nil, err
	}
	outer := len(c.scope)
	n.this, n.value = c.bind("this"), c.bind("value")
	n.in, err = c.optional(args, "in")
	c.scope = c.scope[:outer]
	switch {
	case err != nil:
		return nil, err
	case n.input == nil:
		return nil, mongoerr.New(40077, "$reduce requires 'input' to be specified")
	case n.initial == nil:
		return nil, mongoerr.New(40078, "$reduce requires 'initialValue' to be specified")
	case n.in == nil:
		return nil, mongoerr.New(40079, "$reduce requires 'in' to be specified")
	}
	return n, nil
}

// sortArrayNode is $sortArray: by whole values, or by the keys of documents.
type sortArrayNode struct {
	input node
	by    *Sort // nil: whole values
	desc  bool
}

func (n *sortArrayNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.input.eval(s)
	if err != nil || nullish(v) {
		return bson.Null, err
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(2942504, "The input argument to $sortArray must be an array, but was of type: %s", bson.TypeName(v.Type))
	}
	mark := len(s.stack)
	s.pushElements(v.Data)
	if n.by != nil {
		err = sortByKeys(s.stack[mark:], n.by)
	} else {
		slices.SortStableFunc(s.stack[mark:], func(a, b bson.Value) int {
			if n.desc {
				a, b = b, a
			}
			return compareValues(a, b)
		})
	}
	if err != nil {
		return v, err
	}
	return s.popArray(mark)
}

// sortByKeys sorts values by the sort's keys; what is no document sorts as an empty one.
func sortByKeys(values []bson.Value, by *Sort) error {
	type keyed struct {
		key   []byte
		value bson.Value
	}
	all := make([]keyed, len(values))
	for i, v := range values {
		doc := bson.Document(emptyArray.Data)
		if v.Type == bson.TypeDocument {
			doc = v.Data
		}
		key, err := by.AppendKey(nil, doc)
		if err != nil {
			return err
		}
		all[i] = keyed{key, v}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	for i := range all {
		values[i] = all[i].value
	}
	return nil
}

func buildSortArray(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(2942500, "$sortArray requires an object as an argument, found: %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(2942501, "$sortArray found an unknown argument: %s", f)
	}, "input", "sortBy")
	if err != nil {
		return nil, err
	}
	n := &sortArrayNode{}
	if n.input, err = c.optional(args, "input"); err != nil {
		return nil, err
	}
	by, ok := args["sortBy"]
	switch {
	case n.input == nil:
		return nil, mongoerr.New(2942502, "$sortArray requires 'input' to be specified")
	case !ok:
		return nil, mongoerr.New(2942503, "$sortArray requires 'sortBy' to be specified")
	case by.Type == bson.TypeDocument:
		n.by, _, err = ParseSort(by.Data)
		return n, err
	}
	direction, ok := wholeNumber(by)
	if !ok || direction != 1 && direction != -1 {
		return nil, mongoerr.New(2942506, "The $sort element value must be either 1 or -1")
	}
	n.desc = direction < 0
	return n, nil
}
