package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// fieldSet is the fields of a document under construction: setting a field that is there keeps its place.
type fieldSet struct {
	fields []field
	at     map[string]int // of documents with many fields only
}

// indexedFields is from how many fields on a fieldSet has an index.
const indexedFields = 32

func (f *fieldSet) find(name string) int {
	if f.at != nil {
		if i, ok := f.at[name]; ok {
			return i
		}
		return -1
	}
	for i := range f.fields {
		if f.fields[i].name == name {
			return i
		}
	}
	return -1
}

func (f *fieldSet) set(name string, v bson.Value) {
	if i := f.find(name); i >= 0 {
		f.fields[i].value = v
		return
	}
	f.fields = append(f.fields, field{name, v})
	if f.at != nil {
		f.at[name] = len(f.fields) - 1
	} else if len(f.fields) == indexedFields {
		f.at = make(map[string]int, 2*indexedFields)
		for i := range f.fields {
			f.at[f.fields[i].name] = i
		}
	}
}

// merge sets all fields of a document.
func (f *fieldSet) merge(doc []byte) {
	it := bson.Elements(doc)
	for it.Next() {
		f.set(string(it.Key()), it.Value())
	}
}

func evalObjectToArray(s *Scratch, v bson.Value) (bson.Value, error) {
	if nullish(v) {
		return bson.Null, nil
	}
	if v.Type != bson.TypeDocument {
		return v, mongoerr.New(40390, "$objectToArray requires a document input, found: %s", bson.TypeName(v.Type))
	}
	mark := len(s.stack)
	it := bson.Elements(v.Data)
	for it.Next() {
		key, err := s.text(it.Key())
		if err != nil {
			return v, err
		}
		pair, err := s.document([]field{{"k", key}, {"v", it.Value()}})
		if err != nil {
			return v, err
		}
		s.push(pair)
	}
	return s.popArray(mark)
}

func evalArrayToObject(s *Scratch, v bson.Value) (bson.Value, error) {
	if nullish(v) {
		return bson.Null, nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(40386, "$arrayToObject requires an array input, found: %s", bson.TypeName(v.Type))
	}
	var out fieldSet
	var first bson.Type
	it := bson.Elements(v.Data)
	for it.Next() {
		e := it.Value()
		if first == 0 {
			first = e.Type
		}
		var key, value bson.Value
		var err error
		switch first {
		case bson.TypeArray:
			key, value, err = pairOfArray(e)
		case bson.TypeDocument:
			key, value, err = pairOfDocument(e)
		default:
			err = mongoerr.New(40398, "Unrecognised input type format for $arrayToObject: %s", bson.TypeName(e.Type))
		}
		if err != nil {
			return v, err
		}
		name := textOf(key)
		if strings.IndexByte(name, 0) >= 0 {
			return v, mongoerr.New(4940400, "Key field cannot contain an embedded null byte")
		}
		out.set(name, value)
	}
	return s.document(out.fields)
}

func pairOfArray(e bson.Value) (key, value bson.Value, err error) {
	if e.Type != bson.TypeArray {
		return key, value, mongoerr.New(40396, "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: %s", bson.TypeName(e.Type))
	}
	if n := countElements(e.Data); n != 2 {
		return key, value, mongoerr.New(40397, "$arrayToObject requires an array of size 2 arrays, found array of size: %d", n)
	}
	key, value = elementAt(e.Data, 0), elementAt(e.Data, 1)
	if key.Type != bson.TypeString {
		return key, value, mongoerr.New(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", bson.TypeName(key.Type))
	}
	return key, value, nil
}

func pairOfDocument(e bson.Value) (key, value bson.Value, err error) {
	if e.Type != bson.TypeDocument {
		return key, value, mongoerr.New(40391, "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: %s", bson.TypeName(e.Type))
	}
	if n := countElements(e.Data); n != 2 {
		return key, value, mongoerr.New(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", n)
	}
	key, haveKey := bson.Get(e.Data, "k")
	value, haveValue := bson.Get(e.Data, "v")
	if !haveKey || !haveValue {
		return key, value, mongoerr.New(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", show(e))
	}
	if key.Type != bson.TypeString {
		return key, value, mongoerr.New(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", bson.TypeName(key.Type))
	}
	return key, value, nil
}

// getFieldNode is $getField: a field by a name that is no path.
type getFieldNode struct {
	name  string
	input node
}

func (n *getFieldNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.input.eval(s)
	if err != nil || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
		return bson.Null, err
	}
	if v.Type != bson.TypeDocument {
		return bson.Value{}, nil
	}
	v, _ = bson.Get(v.Data, n.name)
	return v, nil
}

func buildGetField(c *compiler, name string, arg bson.Value) (node, error) {
	args := map[string]bson.Value{"field": arg}
	if key, _, ok := bson.First(arg.Data); arg.Type == bson.TypeDocument && (!ok || !strings.HasPrefix(key, "$")) {
		var err error
		if args, err = params(arg, nil, func(f string) error {
			return mongoerr.New(3041701, "%s found an unknown argument: %s", name, f)
		}, "field", "input"); err != nil {
			return nil, err
		}
		if _, ok := args["input"]; !ok {
			return nil, mongoerr.New(3041703, "%s requires 'input' to be specified", name)
		}
	}
	n := &getFieldNode{}
	var err error
	if n.name, err = c.fieldName(name, args, 3041702); err != nil {
		return nil, err
	}
	if n.input, err = c.optional(args, "input"); err != nil {
		return nil, err
	}
	if n.input == nil {
		n.input, err = c.fieldPath("$$CURRENT")
	}
	return n, err
}

// fieldName compiles the field argument of $getField and $setField, which must be a constant string.
func (c *compiler) fieldName(operator string, args map[string]bson.Value, missing mongoerr.Code) (string, error) {
	n, err := c.optional(args, "field")
	if err != nil {
		return "", err
	}
	if n == nil {
		return "", mongoerr.New(missing, "%s requires 'field' to be specified", operator)
	}
	k, ok := n.(constant)
	if !ok {
		return "", mongoerr.New(missing+4, "%s requires 'field' to evaluate to a constant, got a non-constant argument", operator)
	}
	if k.value.Type != bson.TypeString {
		return "", mongoerr.New(missing+5, "%s requires 'field' to evaluate to type String, found: %s", operator, bson.TypeName(k.value.Type))
	}
	name := textOf(k.value)
	if strings.IndexByte(name, 0) >= 0 {
		return "", mongoerr.New(mongoerr.FieldPathNul, "FieldPath field names may not contain '\\0'.")
	}
	return name, nil
}

// setFieldNode is $setField, and $unsetField with a value that is missing.
type setFieldNode struct {
	operator     string
	name         string
	input, value node
}

func (n *setFieldNode) eval(s *Scratch) (bson.Value, error) {
	input, err := n.input.eval(s)
	if err != nil || nullish(input) {
		return bson.Null, err
	}
	if input.Type != bson.TypeDocument {
		return input, mongoerr.New(4161105, "%s requires 'input' to evaluate to type Object", n.operator)
	}
	v, err := n.value.eval(s)
	if err != nil {
		return v, err
	}
	dst, err := s.grab(len(input.Data) + len(n.name) + len(v.Data) + 2)
	if err != nil {
		return v, err
	}
	return bson.Value{Type: bson.TypeDocument, Data: appendWith(dst, input.Data, n.name, v)}, nil
}

// appendWith appends a document with one top-level field set, or taken out if v is missing.
func appendWith(dst []byte, doc []byte, name string, v bson.Value) []byte {
	start := len(dst)
	dst = begin(dst)
	it := bson.Elements(doc)
	for it.Next() {
		if string(it.Key()) == name {
			dst = appendField(dst, name, v)
			v = bson.Value{}
			continue
		}
		dst = append(dst, it.Raw()...)
	}
	return finish(appendField(dst, name, v), start)
}

func buildSetField(c *compiler, name string, arg bson.Value) (node, error) {
	allowed := []string{"field", "input", "value"}
	if name == "$unsetField" {
		allowed = allowed[:2]
	}
	args, err := params(arg, mongoerr.New(4161100, "%s only supports an object as its argument", name), func(f string) error {
		return mongoerr.New(4161101, "%s found an unknown argument: %s", name, f)
	}, allowed...)
	if err != nil {
		return nil, err
	}
	n := &setFieldNode{operator: name, value: constant{}}
	if n.name, err = c.fieldName(name, args, 4161102); err != nil {
		return nil, err
	}
	if _, ok := args["value"]; !ok && name == "$setField" {
		return nil, mongoerr.New(4161103, "%s requires 'value' to be specified", name)
	}
	if err := c.optionals(args, map[string]*node{"input": &n.input, "value": &n.value}); err != nil {
		return nil, err
	}
	if n.input == nil {
		return nil, mongoerr.New(4161109, "%s requires 'input' to be specified", name)
	}
	return n, nil
}
