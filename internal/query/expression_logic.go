package query

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// relation is a comparison operator of expressions.
type relation uint8

const (
	relEq relation = iota
	relNe
	relGt
	relGte
	relLt
	relLte
	relCmp
)

func (r relation) holds(c int) bool {
	switch r {
	case relEq:
		return c == 0
	case relNe:
		return c != 0
	case relGt:
		return c > 0
	case relGte:
		return c >= 0
	case relLt:
		return c < 0
	}
	return c <= 0
}

// compareNode is $eq, $ne, $gt, $gte, $lt, $lte and $cmp: over all types, in the BSON comparison order.
type compareNode struct {
	rel         relation
	left, right node
}

func (n *compareNode) eval(s *Scratch) (bson.Value, error) {
	a, err := n.left.eval(s)
	if err != nil {
		return a, err
	}
	b, err := n.right.eval(s)
	if err != nil {
		return b, err
	}
	c := compareValues(a, b)
	if n.rel == relCmp {
		return s.int32(int32(c)), nil
	}
	return boolean(n.rel.holds(c)), nil
}

func comparison(rel relation) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		of, err := c.arguments(name, arg, 2, 2)
		if err != nil {
			return nil, err
		}
		return &compareNode{rel, of[0], of[1]}, nil
	}
}

// andNode is $and, and $or where any is set.
type andNode struct {
	of  []node
	any bool
}

func (n *andNode) eval(s *Scratch) (bson.Value, error) {
	for _, of := range n.of {
		v, err := of.eval(s)
		if err != nil {
			return v, err
		}
		if Truth(v) == n.any {
			return boolean(n.any), nil
		}
	}
	return boolean(!n.any), nil
}

func junction(any bool) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		of, err := c.arguments(name, arg, 0, unbounded)
		if err != nil {
			return nil, err
		}
		return &andNode{of, any}, nil
	}
}

func evalNot(_ *Scratch, v bson.Value) (bson.Value, error) { return boolean(!Truth(v)), nil }

// branchNode is $cond and $switch: the first branch whose test is true, else otherwise, which is nil where there is none.
type branchNode struct {
	tests, results []node
	otherwise      node
}

func (n *branchNode) eval(s *Scratch) (bson.Value, error) {
	for i, test := range n.tests {
		v, err := test.eval(s)
		if err != nil {
			return v, err
		}
		if Truth(v) {
			return n.results[i].eval(s)
		}
	}
	if n.otherwise == nil {
		return bson.Null, mongoerr.New(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return n.otherwise.eval(s)
}

func buildCond(c *compiler, name string, arg bson.Value) (node, error) {
	if arg.Type != bson.TypeDocument {
		of, err := c.arguments(name, arg, 3, 3)
		if err != nil {
			return nil, err
		}
		return &branchNode{of[:1], of[1:2], of[2]}, nil
	}
	args, err := params(arg, nil, func(f string) error {
		return mongoerr.New(17083, "Unrecognized parameter to $cond: %s", f)
	}, "if", "then", "else")
	if err != nil {
		return nil, err
	}
	var of [3]node
	for i, p := range []string{"if", "then", "else"} {
		if of[i], err = c.optional(args, p); err != nil {
			return nil, err
		}
		if of[i] == nil {
			return nil, mongoerr.New(mongoerr.Code(17080+i), "Missing '%s' parameter to $cond", p)
		}
	}
	return &branchNode{of[:1], of[1:2], of[2]}, nil
}

func buildSwitch(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(40060, "$switch requires an object as an argument, found: %s", bson.TypeName(arg.Type)), func(f string) error {
		return mongoerr.New(40067, "$switch found an unknown argument: %s", f)
	}, "branches", "default")
	if err != nil {
		return nil, err
	}
	n := &branchNode{}
	if branches, ok := args["branches"]; ok {
		if branches.Type != bson.TypeArray {
			return nil, mongoerr.New(40061, "$switch expected an array for 'branches', found: %s", bson.TypeName(branches.Type))
		}
		it := bson.Elements(branches.Data)
		for it.Next() {
			if err := c.branch(n, it.Value()); err != nil {
				return nil, err
			}
		}
	}
	if n.otherwise, err = c.optional(args, "default"); err != nil {
		return nil, err
	}
	if len(n.tests) == 0 {
		return nil, mongoerr.New(40068, "$switch requires at least one branch.")
	}
	return n, nil
}

func (c *compiler) branch(n *branchNode, v bson.Value) error {
	args, err := params(v, mongoerr.New(40062, "$switch expected each branch to be an object, found: %s", bson.TypeName(v.Type)), func(f string) error {
		return mongoerr.New(40063, "$switch found an unknown argument to a branch: %s", f)
	}, "case", "then")
	if err != nil {
		return err
	}
	test, err := c.optional(args, "case")
	if err != nil {
		return err
	}
	result, err := c.optional(args, "then")
	switch {
	case err != nil:
		return err
	case test == nil:
		return mongoerr.New(40064, "$switch requires each branch have a 'case' expression")
	case result == nil:
		return mongoerr.New(40065, "$switch requires each branch have a 'then' expression.")
	}
	n.tests = append(n.tests, test)
	n.results = append(n.results, result)
	return nil
}

// ifNullNode is $ifNull: the first of its arguments that is not null, else the last.
type ifNullNode struct{ of []node }

func (n *ifNullNode) eval(s *Scratch) (v bson.Value, err error) {
	for _, of := range n.of {
		if v, err = of.eval(s); err != nil || !nullish(v) {
			return v, err
		}
	}
	return v, nil
}

func buildIfNull(c *compiler, name string, arg bson.Value) (node, error) {
	of, err := c.arguments(name, arg, 0, unbounded)
	if err != nil {
		return nil, err
	}
	if len(of) < 2 {
		return nil, mongoerr.New(1257300, "$ifNull needs at least two arguments, had: %d", len(of))
	}
	return &ifNullNode{of}, nil
}

// letNode is $let.
type letNode struct {
	slots []int
	vars  []node
	in    node
}

func (n *letNode) eval(s *Scratch) (bson.Value, error) {
	for i, of := range n.vars {
		v, err := of.eval(s)
		if err != nil {
			return v, err
		}
		s.vars[n.slots[i]] = v
	}
	return n.in.eval(s)
}

func buildLet(c *compiler, _ string, arg bson.Value) (node, error) {
	args, err := params(arg, mongoerr.New(16874, "$let only supports an object as its argument"), func(f string) error {
		return mongoerr.New(16875, "Unrecognized parameter to $let: %s", f)
	}, "vars", "in")
	if err != nil {
		return nil, err
	}
	vars, ok := args["vars"]
	if !ok {
		return nil, mongoerr.New(16876, "Missing 'vars' parameter to $let")
	}
	in, ok := args["in"]
	if !ok {
		return nil, mongoerr.New(16877, "Missing 'in' parameter to $let")
	}
	if vars.Type != bson.TypeDocument {
		return nil, mongoerr.New(10065, "invalid parameter: expected an object (vars)")
	}
	n := &letNode{}
	var names []string
	it := bson.Elements(vars.Data)
	for it.Next() {
		name := string(it.Key())
		if err := checkVariableName(name); err != nil {
			return nil, err
		}
		of, err := c.compile(it.Value())
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		n.vars = append(n.vars, of)
	}
	outer := len(c.scope)
	for _, name := range names {
		n.slots = append(n.slots, c.bind(name))
	}
	n.in, err = c.compile(in)
	c.scope = c.scope[:outer]
	return n, err
}

func buildLiteral(_ *compiler, _ string, arg bson.Value) (node, error) { return constant{arg}, nil }
