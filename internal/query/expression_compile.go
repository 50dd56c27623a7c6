package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// compiler turns an expression's BSON into nodes. It notes on the way which fields are read, and which parts read nothing.
type compiler struct {
	env     Env
	scope   []binding // innermost last
	slots   int
	fields  []string
	whole   bool
	nests   bool
	dynamic int // fields and variables met so far: a part that adds none is constant
	depth   int
}

// binding is a variable in scope and where an evaluation keeps it.
type binding struct {
	name string
	slot int
}

// builder compiles one operator's argument.
type builder func(c *compiler, name string, arg bson.Value) (node, error)

// maxExpressionDepth is beyond what a valid command document can nest.
const maxExpressionDepth = 2 * bson.MaxDepth

func (c *compiler) compile(v bson.Value) (node, error) {
	if c.depth++; c.depth > maxExpressionDepth {
		return nil, mongoerr.New(mongoerr.Overflow, "expression exceeds the maximum depth of %d", maxExpressionDepth)
	}
	defer func() { c.depth-- }()
	switch v.Type {
	case bson.TypeString:
		if text := textOf(v); strings.HasPrefix(text, "$") {
			return c.fieldPath(text)
		}
	case bson.TypeDocument:
		if key, arg, ok := bson.First(v.Data); ok && strings.HasPrefix(key, "$") {
			return c.operator(key, arg, v)
		}
		return c.folded(func() (node, error) {
			c.nests = true
			return c.object(v.Data)
		})
	case bson.TypeArray:
		return c.folded(func() (node, error) {
			c.nests = true
			of, err := c.compileAll(v.Data)
			return &arrayNode{of}, err
		})
	}
	return constant{v}, nil
}

func (c *compiler) compileAll(array []byte) ([]node, error) {
	var out []node
	it := bson.Elements(array)
	for it.Next() {
		n, err := c.compile(it.Value())
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (c *compiler) operator(name string, arg, whole bson.Value) (node, error) {
	if countElements(whole.Data) != 1 {
		return nil, mongoerr.New(15983, "An object representing an expression must have exactly one field: %s", show(whole))
	}
	build := operatorNamed(name)
	c.nests = c.nests || arrayOperator(name) != nil || objectOperator(name) != nil
	if build == nil {
		return nil, mongoerr.New(mongoerr.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	return c.folded(func() (node, error) { return build(c, name, arg) })
}

// folded computes what build returns at once if it reads no field and no variable.
func (c *compiler) folded(build func() (node, error)) (node, error) {
	before, nested := c.dynamic, c.nests
	n, err := build()
	if err != nil || c.dynamic != before {
		return n, err
	}
	c.nests = nested // the value lies in the command, which is not nested too deeply
	if _, ok := n.(constant); ok {
		return n, nil
	}
	s := Scratch{}
	s.reset(nil, c.slots)
	v, err := n.eval(&s)
	if err != nil {
		return nil, err
	}
	return constant{v}, nil
}

func (c *compiler) object(doc []byte) (node, error) {
	n := &objectNode{}
	it := bson.Elements(doc)
	for it.Next() {
		name := string(it.Key())
		if err := checkFieldName(name); err != nil {
			return nil, err
		}
		for _, have := range n.names {
			if have == name {
				return nil, mongoerr.New(mongoerr.DuplicateFieldName, "duplicate field name specified in object literal: %s", show(bson.Value{Type: bson.TypeDocument, Data: doc}))
			}
		}
		of, err := c.compile(it.Value())
		if err != nil {
			return nil, err
		}
		n.names = append(n.names, name)
		n.of = append(n.of, of)
	}
	return n, nil
}

// checkFieldName refuses what can't be a field name in a field path or an object expression.
func checkFieldName(name string) error {
	switch {
	case name == "":
		return mongoerr.New(mongoerr.FieldPathEmptyPart, "FieldPath field names may not be empty strings.")
	case name[0] == '$':
		return mongoerr.New(mongoerr.FieldPathDollar, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	case strings.IndexByte(name, 0) >= 0:
		return mongoerr.New(mongoerr.FieldPathNul, "FieldPath field names may not contain '\\0'.")
	case strings.Contains(name, "."):
		return mongoerr.New(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
	}
	return nil
}

// splitFieldPath splits a dotted path and checks its parts.
func splitFieldPath(path string) ([]string, error) {
	if path == "" {
		return nil, mongoerr.New(mongoerr.FieldPathEmpty, "FieldPath cannot be constructed with empty string")
	}
	if strings.HasSuffix(path, ".") {
		return nil, mongoerr.New(mongoerr.FieldPathTrailingDot, "FieldPath must not end with a '.'.")
	}
	parts := strings.Split(path, ".")
	if len(parts) > bson.MaxDepth {
		return nil, mongoerr.New(mongoerr.Overflow, "FieldPath is too long")
	}
	for _, p := range parts {
		if err := checkFieldName(p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// fieldPath compiles "$path" and "$$variable.path".
func (c *compiler) fieldPath(text string) (node, error) {
	if text == "$" {
		return nil, mongoerr.New(mongoerr.ExpressionFieldPathInvalid, "'$' by itself is not a valid FieldPath")
	}
	if text[1] != '$' {
		parts, err := splitFieldPath(text[1:])
		if err != nil {
			return nil, err
		}
		if slot, ok := c.lookup("CURRENT"); ok {
			return c.variable(slot, parts), nil
		}
		return c.rootPath(parts), nil
	}
	name, rest, dotted := strings.Cut(text[2:], ".")
	if err := checkVariableRead(name); err != nil {
		return nil, err
	}
	var parts []string
	if dotted {
		var err error
		if parts, err = splitFieldPath(rest); err != nil {
			return nil, err
		}
	}
	return c.namedVariable(name, parts)
}

func (c *compiler) lookup(name string) (slot int, ok bool) {
	for i := len(c.scope) - 1; i >= 0; i-- {
		if c.scope[i].name == name {
			return c.scope[i].slot, true
		}
	}
	return 0, false
}

func (c *compiler) namedVariable(name string, parts []string) (node, error) {
	if slot, ok := c.lookup(name); ok {
		return c.variable(slot, parts), nil
	}
	switch name {
	case "ROOT", "CURRENT":
		return c.rootPath(parts), nil
	case "REMOVE":
		return constant{}, nil
	case "NOW":
		var s Scratch
		return constantPath(s.date(c.env.NowMillis), parts)
	}
	if slices.Contains(c.env.unbound, name) {
		slot := c.bind(name)
		c.scope = c.scope[:len(c.scope)-1]
		return c.variable(slot, parts), nil
	}
	if v, ok := bson.Get(c.env.Let, name); ok {
		if v.Type == bson.TypeUndefined {
			v = bson.Value{}
		}
		return constantPath(v, parts)
	}
	return nil, mongoerr.New(17276, "Use of undefined variable: %s", name)
}

// constantPath follows a path in a value that is known now.
func constantPath(v bson.Value, parts []string) (node, error) {
	var s Scratch
	v, err := s.follow(v, parts)
	return constant{v}, err
}

func (c *compiler) variable(slot int, parts []string) node {
	c.dynamic++
	if len(parts) == 0 {
		return variableNode(slot)
	}
	return &variablePath{slot, parts}
}

func (c *compiler) rootPath(parts []string) node {
	c.dynamic++
	if len(parts) == 0 {
		c.whole = true
		return rootNode{}
	}
	c.fields = append(c.fields, parts[0])
	if len(parts) == 1 {
		return rootField(parts[0])
	}
	return &rootPath{parts}
}

// bind adds a variable to the scope; the caller cuts the scope back to its former length.
func (c *compiler) bind(name string) int {
	slot := c.slots
	c.slots++
	c.scope = append(c.scope, binding{name, slot})
	return slot
}

// checkVariableRead refuses what can't be a variable's name in "$$name".
func checkVariableRead(name string) error {
	if name == "" {
		return mongoerr.New(mongoerr.FailedToParse, "empty variable names are not allowed")
	}
	if first := name[0]; !isLetter(first) && first < 0x80 {
		return mongoerr.New(mongoerr.FailedToParse, "'%s' starts with an invalid character for a variable name", name)
	}
	return checkVariableBytes(name)
}

// checkVariableName refuses what a user may not name a variable: it starts with a lower-case letter or is CURRENT.
func checkVariableName(name string) error {
	if name == "CURRENT" {
		return nil
	}
	if name == "" {
		return mongoerr.New(mongoerr.FailedToParse, "empty variable names are not allowed")
	}
	if first := name[0]; (first < 'a' || first > 'z') && first < 0x80 {
		return mongoerr.New(mongoerr.FailedToParse, "'%s' starts with an invalid character for a user variable name", name)
	}
	return checkVariableBytes(name)
}

func checkVariableBytes(name string) error {
	for i := 1; i < len(name); i++ {
		if b := name[i]; !isLetter(b) && (b < '0' || b > '9') && b != '_' && b < 0x80 {
			return mongoerr.New(mongoerr.FailedToParse, "'%s' contains an invalid character for a variable name: '%c'", name, b)
		}
	}
	return nil
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func errLetNotConstant() error {
	return mongoerr.New(4890500, "Command let Expression does not evaluate to a constant")
}

// unbounded is no bound on how many arguments an operator takes.
const unbounded = -1

// arguments compiles an operator's list, or its one argument that stands without brackets.
func (c *compiler) arguments(name string, arg bson.Value, least, most int) ([]node, error) {
	n := 1
	if arg.Type == bson.TypeArray {
		n = countElements(arg.Data)
	}
	switch {
	case least == most && n != least:
		return nil, mongoerr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, least, n)
	case n < least || most != unbounded && n > most:
		if most == unbounded {
			return nil, mongoerr.New(28667, "Expression %s takes at least %d arguments. %d were passed in.", name, least, n)
		}
		return nil, mongoerr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, least, most, n)
	}
	if arg.Type == bson.TypeArray {
		return c.compileAll(arg.Data)
	}
	of, err := c.compile(arg)
	return []node{of}, err
}

// params reads the named arguments of an operator. notObject and unknown make MongoDB's errors for it.
func params(arg bson.Value, notObject error, unknown func(field string) error, allowed ...string) (map[string]bson.Value, error) {
	if arg.Type != bson.TypeDocument {
		return nil, notObject
	}
	out := make(map[string]bson.Value)
	it := bson.Elements(arg.Data)
next:
	for it.Next() {
		key := string(it.Key())
		for _, a := range allowed {
			if key == a {
				out[a] = it.Value()
				continue next
			}
		}
		return nil, unknown(key)
	}
	return out, nil
}

// optional compiles a named argument; it is nil where there is none.
func (c *compiler) optional(args map[string]bson.Value, name string) (node, error) {
	v, ok := args[name]
	if !ok {
		return nil, nil
	}
	return c.compile(v)
}

// optionals compiles several named arguments into the nodes given for them.
func (c *compiler) optionals(args map[string]bson.Value, into map[string]*node) error {
	for name, v := range args {
		dst, ok := into[name]
		if !ok {
			continue
		}
		n, err := c.compile(v)
		if err != nil {
			return err
		}
		*dst = n
	}
	return nil
}
