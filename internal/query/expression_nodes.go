package query

import "oxbow/internal/bson"

// constant is a value known when the command is compiled.
type constant struct{ value bson.Value }

func (n constant) eval(*Scratch) (bson.Value, error) { return n.value, nil }

// rootNode is $$ROOT.
type rootNode struct{}

func (rootNode) eval(s *Scratch) (bson.Value, error) {
	return bson.Value{Type: bson.TypeDocument, Data: s.doc}, nil
}

// rootField is a top-level field of the document.
type rootField string

func (n rootField) eval(s *Scratch) (bson.Value, error) {
	v, _ := bson.Get(s.doc, string(n))
	return v, nil
}

// rootPath is a dotted path from the document.
type rootPath struct{ parts []string }

func (n *rootPath) eval(s *Scratch) (bson.Value, error) { return s.followDocument(s.doc, n.parts) }

// variableNode is the slot of a variable.
type variableNode int

func (n variableNode) eval(s *Scratch) (bson.Value, error) { return s.vars[n], nil }

// variablePath is a path below a variable.
type variablePath struct {
	slot  int
	parts []string
}

func (n *variablePath) eval(s *Scratch) (bson.Value, error) { return s.follow(s.vars[n.slot], n.parts) }

// follow walks a path from a value: through a document to its field, through an array to the array of what its documents have there.
// Unlike in filters a number is a field's name, never an index
// (https://www.mongodb.com/docs/manual/core/field-paths/).
func (s *Scratch) follow(v bson.Value, parts []string) (bson.Value, error) {
	if len(parts) == 0 {
		return v, nil
	}
	switch v.Type {
	case bson.TypeDocument:
		return s.followDocument(v.Data, parts)
	case bson.TypeArray:
		return s.followArray(v.Data, parts)
	}
	return bson.Value{}, nil
}

func (s *Scratch) followDocument(doc []byte, parts []string) (bson.Value, error) {
	v, ok := bson.Get(doc, parts[0])
	if !ok {
		return bson.Value{}, nil
	}
	return s.follow(v, parts[1:])
}

func (s *Scratch) followArray(array []byte, parts []string) (bson.Value, error) {
	mark := len(s.stack)
	it := bson.Elements(array)
	for it.Next() {
		v := it.Value()
		if v.Type != bson.TypeDocument {
			continue
		}
		v, err := s.followDocument(v.Data, parts)
		if err != nil {
			return bson.Value{}, err
		}
		if v.Type != 0 {
			s.push(v)
		}
	}
	return s.popArray(mark)
}

// arrayNode is [a, b, …].
type arrayNode struct{ of []node }

func (n *arrayNode) eval(s *Scratch) (bson.Value, error) {
	mark := len(s.stack)
	if err := s.pushAll(n.of); err != nil {
		return bson.Value{}, err
	}
	return s.popArray(mark)
}

// pushAll evaluates nodes onto the stack.
func (s *Scratch) pushAll(of []node) error {
	for _, n := range of {
		v, err := n.eval(s)
		if err != nil {
			return err
		}
		s.push(v)
	}
	return nil
}

// objectNode is {name: expression, …}; fields whose value is missing are left out.
type objectNode struct {
	names []string
	of    []node
}

func (n *objectNode) eval(s *Scratch) (bson.Value, error) {
	mark := len(s.stack)
	if err := s.pushAll(n.of); err != nil {
		return bson.Value{}, err
	}
	values := s.stack[mark:]
	size := 5
	for i, v := range values {
		if v.Type != 0 {
			size += 2 + len(n.names[i]) + len(v.Data)
		}
	}
	dst, err := s.grab(size)
	if err != nil {
		return bson.Value{}, err
	}
	dst = append(dst, byte(size), byte(size>>8), byte(size>>16), byte(size>>24))
	for i, v := range values {
		dst = appendField(dst, n.names[i], v)
	}
	s.stack = s.stack[:mark]
	return bson.Value{Type: bson.TypeDocument, Data: append(dst, 0)}, nil
}

// unaryNode, binaryNode and naryNode are operators that see only the values of their arguments.
type unaryNode struct {
	of    node
	apply func(s *Scratch, v bson.Value) (bson.Value, error)
}

func (n *unaryNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.of.eval(s)
	if err != nil {
		return v, err
	}
	return n.apply(s, v)
}

type binaryNode struct {
	left, right node
	apply       func(s *Scratch, a, b bson.Value) (bson.Value, error)
}

func (n *binaryNode) eval(s *Scratch) (bson.Value, error) {
	a, err := n.left.eval(s)
	if err != nil {
		return a, err
	}
	b, err := n.right.eval(s)
	if err != nil {
		return b, err
	}
	return n.apply(s, a, b)
}

type naryNode struct {
	of    []node
	apply func(s *Scratch, args []bson.Value) (bson.Value, error)
}

func (n *naryNode) eval(s *Scratch) (bson.Value, error) {
	mark := len(s.stack)
	if err := s.pushAll(n.of); err != nil {
		return bson.Value{}, err
	}
	v, err := n.apply(s, s.stack[mark:len(s.stack):len(s.stack)])
	s.stack = s.stack[:mark]
	return v, err
}

func unary(apply func(s *Scratch, v bson.Value) (bson.Value, error)) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		of, err := c.arguments(name, arg, 1, 1)
		if err != nil {
			return nil, err
		}
		return &unaryNode{of[0], apply}, nil
	}
}

func dyadic(apply func(s *Scratch, a, b bson.Value) (bson.Value, error)) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		of, err := c.arguments(name, arg, 2, 2)
		if err != nil {
			return nil, err
		}
		return &binaryNode{of[0], of[1], apply}, nil
	}
}

func nary(least, most int, apply func(s *Scratch, args []bson.Value) (bson.Value, error)) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		of, err := c.arguments(name, arg, least, most)
		if err != nil {
			return nil, err
		}
		return &naryNode{of, apply}, nil
	}
}
