package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// ParseFilter compiles a filter document. Unknown operators are BadValue, operators that are not built are refused by
// name, regular expressions that don't compile are error 51091.
func ParseFilter(filter bson.Document, env Env) (*Filter, error) {
	if filter == nil {
		return &Filter{root: &And{}, raw: emptyDocument}, nil
	}
	root, err := filterParser{env: env}.document(filter)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, raw: filter}, nil
}

// filterParser compiles documents to nodes.
type filterParser struct {
	env    Env
	nested bool // under $elemMatch, where the document is an element
}

// conjunction returns the And of nodes, or the only one.
func conjunction(nodes []Node) Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return &And{Of: nodes}
}

// document compiles a query document: top-level operators and fields.
func (p filterParser) document(doc bson.Document) (Node, error) {
	nodes := make([]Node, 0, 2)
	it := bson.Elements(doc)
	for it.Next() {
		key, v := string(it.Key()), it.Value()
		var (
			more []Node
			only Node
			err  error
		)
		switch {
		case strings.HasPrefix(key, "$"):
			more, err = p.topLevel(key, v)
		case isOperatorDocument(v, false):
			more, err = p.operators(bson.ParsePath(key), v.Data)
		default:
			only, err = equalityNode(bson.ParsePath(key), v)
		}
		if err != nil {
			return nil, err
		}
		if only != nil {
			nodes = append(nodes, only)
		}
		nodes = append(nodes, more...)
	}
	if it.Err() != nil {
		return nil, mongoerr.New(mongoerr.InvalidBSON, "the filter is not well-formed BSON")
	}
	return conjunction(nodes), nil
}

func one(n Node, err error) ([]Node, error) { return []Node{n}, err }

// pathless lists the operators that stand in place of a field, and whether they are built.
var pathless = map[string]bool{
	"$and": true, "$or": true, "$nor": true, "$expr": true, "$comment": true, "$alwaysTrue": true, "$alwaysFalse": true,
	"$ref": true, "$id": true, "$db": true,
	"$where": false, "$text": false, "$jsonSchema": false, "$sampleRate": false,
}

func (p filterParser) topLevel(name string, v bson.Value) ([]Node, error) {
	built, known := pathless[name]
	if !known {
		return nil, mongoerr.New(mongoerr.BadValue,
			"unknown top level operator: %s. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.", name)
	}
	if !built {
		return nil, unbuiltOperator(name)
	}
	switch name {
	case "$comment":
		return nil, nil
	case "$ref", "$id", "$db": // the fields of a DBRef
		return one(equalityNode(bson.ParsePath(name), v))
	case "$alwaysTrue", "$alwaysFalse":
		return one(alwaysNode(name, v))
	case "$expr":
		return one(p.expression(v))
	}
	of, err := p.clauses(name, v)
	switch name {
	case "$and":
		return one(&And{Of: of}, err)
	case "$or":
		return one(&Or{Of: of}, err)
	default:
		return one(&Nor{Of: of}, err)
	}
}

func unbuiltOperator(name string) error {
	return mongoerr.New(mongoerr.CommandNotSupported, "the query operator '%s' is not supported yet", name)
}

// alwaysNode compiles {$alwaysTrue: 1} and {$alwaysFalse: 1}.
func alwaysNode(name string, v bson.Value) (Node, error) {
	n, reason := integerOperand(name, v)
	switch {
	case reason != "":
		return nil, mongoerr.New(mongoerr.FailedToParse, "%s", reason)
	case n != 1:
		return nil, mongoerr.New(mongoerr.FailedToParse, "%s must be an integer value of 1", name)
	case name == "$alwaysTrue":
		return &And{}, nil
	default:
		return &Or{}, nil
	}
}

func (p filterParser) expression(v bson.Value) (Node, error) {
	if p.nested {
		return nil, mongoerr.New(mongoerr.BadValue, "$expr can only be applied to the top-level document")
	}
	e, err := ParseExpression(v, p.env)
	if err != nil {
		return nil, err
	}
	return &Expr{Expression: e}, nil
}

// clauses compiles the array of $and, $or and $nor.
func (p filterParser) clauses(name string, v bson.Value) ([]Node, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "%s must be an array", name)
	}
	var of []Node
	it := bson.Elements(v.Data)
	for it.Next() {
		e := it.Value()
		if e.Type != bson.TypeDocument {
			return nil, mongoerr.New(mongoerr.BadValue, "$or/$and/$nor entries need to be full objects")
		}
		n, err := p.document(e.Data)
		if err != nil {
			return nil, err
		}
		of = append(of, n)
	}
	if len(of) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "$and/$or/$nor must be a nonempty array")
	}
	return of, nil
}

// isOperatorDocument reports whether v is a document whose first key is an operator, and not a DBRef: that has $ref and $id, and with
// incomplete set one of $ref, $id and $db is enough.
func isOperatorDocument(v bson.Value, incomplete bool) bool {
	if v.Type != bson.TypeDocument {
		return false
	}
	key, _, ok := bson.First(v.Data)
	if !ok || !strings.HasPrefix(key, "$") {
		return false
	}
	_, ref := bson.Get(v.Data, "$ref")
	_, id := bson.Get(v.Data, "$id")
	_, db := bson.Get(v.Data, "$db")
	if incomplete {
		return !ref && !id && !db
	}
	return !ref || !id
}

// equalityNode compiles {path: v} for a v that is no operator document.
func equalityNode(path bson.Path, v bson.Value) (Node, error) {
	if v.Type == bson.TypeRegex {
		return regexValue(path, v)
	}
	return comparisonNode(path, Eq, v)
}

func comparisonNode(path bson.Path, op Op, v bson.Value) (Node, error) {
	switch {
	case v.Type == bson.TypeUndefined:
		return nil, mongoerr.New(mongoerr.BadValue, "cannot compare to undefined")
	case v.Type == bson.TypeRegex && op != Eq:
		return nil, mongoerr.New(mongoerr.BadValue, "Can't have RegEx as arg to predicate over field '%s'.", path)
	}
	return &Compare{Path: path, Op: op, Value: v}, nil
}

// operators compiles the operators of one field.
func (p filterParser) operators(path bson.Path, doc bson.Document) ([]Node, error) {
	var nodes []Node
	it := bson.Elements(doc)
	for it.Next() {
		n, err := p.operator(path, string(it.Key()), it.Value(), doc)
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// operator compiles {path: {name: v}}; it is nil for what takes part in another operator. siblings is the document it stands in.
func (p filterParser) operator(path bson.Path, name string, v bson.Value, siblings bson.Document) (Node, error) {
	switch name {
	case "$eq":
		return comparisonNode(path, Eq, v)
	case "$lt":
		return comparisonNode(path, Lt, v)
	case "$lte":
		return comparisonNode(path, Lte, v)
	case "$gt":
		return comparisonNode(path, Gt, v)
	case "$gte":
		return comparisonNode(path, Gte, v)
	case "$ne":
		if v.Type == bson.TypeRegex {
			return nil, mongoerr.New(mongoerr.BadValue, "Can't have regex as arg to $ne.")
		}
		return negation(comparisonNode(path, Eq, v))
	case "$in":
		return membership(path, name, v)
	case "$nin":
		return negation(membership(path, name, v))
	case "$not":
		return p.not(path, v)
	case "$exists":
		return &Exists{Path: path, Want: isTrue(v)}, nil
	case "$type":
		return typeTest(path, v)
	case "$mod":
		return modulus(path, v)
	case "$size":
		return size(path, v)
	case "$all":
		return p.all(path, v)
	case "$elemMatch":
		return p.elemMatch(path, v)
	case "$regex":
		return regexDocument(path, siblings)
	case "$options":
		if _, ok := bson.Get(siblings, "$regex"); !ok {
			return nil, mongoerr.New(mongoerr.BadValue, "$options needs a $regex")
		}
		return nil, nil
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return bitTest(path, name, v)
	case "$geoWithin", "$within", "$geoIntersects", "$near", "$nearSphere", "$geoNear", "$maxDistance", "$minDistance", "$uniqueDocs":
		return nil, unbuiltOperator(name)
	case "$where":
		return nil, mongoerr.New(mongoerr.BadValue, "$where cannot be applied to a field")
	}
	return nil, mongoerr.New(mongoerr.BadValue, "unknown operator: %s", name)
}

func negation(n Node, err error) (Node, error) {
	if err != nil {
		return nil, err
	}
	return &Nor{Of: []Node{n}}, nil
}

func (p filterParser) not(path bson.Path, v bson.Value) (Node, error) {
	switch {
	case v.Type == bson.TypeRegex:
		return negation(regexValue(path, v))
	case v.Type != bson.TypeDocument:
		return nil, mongoerr.New(mongoerr.BadValue, "$not needs a regex or a document")
	}
	if _, _, ok := bson.First(v.Data); !ok {
		return nil, mongoerr.New(mongoerr.BadValue, "$not cannot be empty")
	}
	nodes, err := p.operators(path, v.Data)
	if err != nil {
		return nil, err
	}
	return &Nor{Of: []Node{conjunction(nodes)}}, nil
}

func (p filterParser) elemMatch(path bson.Path, v bson.Value) (Node, error) {
	if v.Type != bson.TypeDocument {
		return nil, mongoerr.New(mongoerr.BadValue, "$elemMatch needs an Object")
	}
	p.nested = true
	if key, _, _ := bson.First(v.Data); isOperatorDocument(v, true) {
		if _, field := pathless[key]; !field {
			nodes, err := p.operators(bson.Path{}, v.Data)
			if err != nil {
				return nil, err
			}
			return &ElemMatch{Path: path, Of: conjunction(nodes)}, nil
		}
	}
	of, err := p.document(v.Data)
	if err != nil {
		return nil, err
	}
	return &ElemMatch{Path: path, Object: true, Of: of}, nil
}

// all compiles $all: every value, regular expression or $elemMatch of the array must match; an empty array matches nothing.
func (p filterParser) all(path bson.Path, v bson.Value) (Node, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$all needs an array")
	}
	var (
		nodes []Node
		elems bool
	)
	it := bson.Elements(v.Data)
	for first := true; it.Next(); first = false {
		e := it.Value()
		key := ""
		if e.Type == bson.TypeDocument {
			key, _, _ = bson.First(e.Data)
		}
		if first {
			elems = key == "$elemMatch"
		}
		n, err := p.allElement(path, e, key, elems)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return &Or{}, nil
	}
	return conjunction(nodes), nil
}

// allElement compiles one element of $all, whose first key is key; elems tells whether $all is one of $elemMatch.
func (p filterParser) allElement(path bson.Path, e bson.Value, key string, elems bool) (Node, error) {
	switch {
	case elems && key == "$elemMatch":
		_, of, _ := bson.First(e.Data)
		return p.elemMatch(path, of)
	case elems:
		return nil, mongoerr.New(mongoerr.BadValue, "$all/$elemMatch has to be consistent")
	case strings.HasPrefix(key, "$") && isOperatorDocument(e, false):
		return nil, mongoerr.New(mongoerr.BadValue, "no $ expressions in $all")
	}
	return equalityNode(path, e)
}
