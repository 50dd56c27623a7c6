package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// ParseProjection compiles find's projection: inclusion, exclusion, computed fields, $slice, $elemMatch, $meta refused, and the positional "a.$", for
// which the filter is needed. An empty document keeps documents whole
// (https://www.mongodb.com/docs/manual/reference/method/db.collection.find/#projection).
func ParseProjection(spec bson.Document, filter *Filter, env Env) (*Projection, error) {
	if spec == nil {
		return wholeDocuments, nil
	}
	p := projectionParser{env: env, find: true, filter: filter, root: &projectionNode{}}
	return p.parse(spec)
}

// wholeDocuments is the projection of a find that names none. Projections are never changed.
var wholeDocuments, _ = (&projectionParser{find: true, root: &projectionNode{}}).parse(emptyDocument)

// projectionParser compiles one specification of a find's projection or a $project.
type projectionParser struct {
	env    Env
	find   bool    // find's own operators are allowed
	filter *Filter // the find's, for "a.$"
	root   *projectionNode
	mode   projectionMode

	idNamed, idIncluded, idExcluded  bool
	positional, elemMatches, slicing bool
}

func (p *projectionParser) parse(spec bson.Document) (*Projection, error) {
	if err := p.fields("", spec); err != nil {
		return nil, err
	}
	if p.mode == undecided {
		p.mode = p.fallback()
	}
	id := p.root.child([]byte("_id"))
	switch {
	case p.mode == inclusion && !p.idNamed:
		if err := p.add("_id", &projectionNode{kind: include}); err != nil {
			return nil, err
		}
	case p.mode == exclusion && p.idIncluded:
		p.root.children = slices.Delete(p.root.children, id, id+1)
	}
	p.root.seal(p.mode)
	return &Projection{root: p.root, mode: p.mode, filter: p.filter, positional: p.positional}, nil
}

// fallback decides what a projection is that only names _id and find's operators.
func (p *projectionParser) fallback() projectionMode {
	switch {
	case p.slicing:
		if p.idIncluded {
			return inclusion
		}
		return exclusion
	case p.elemMatches, p.idIncluded:
		return inclusion
	}
	return exclusion
}

// fields compiles the elements of the specification, or of a document in it that stands for the path prefix.
func (p *projectionParser) fields(prefix string, spec []byte) error {
	it := bson.Elements(spec)
	for it.Next() {
		name := string(it.Key())
		if prefix == "" && (name == "_id" || strings.HasPrefix(name, "_id.")) {
			p.idNamed = true
		}
		if err := p.field(joinField(prefix, name), it.Value()); err != nil {
			return err
		}
	}
	if it.Err() != nil {
		return mongoerr.New(mongoerr.InvalidBSON, "the projection is malformed")
	}
	return nil
}

// joinField is joinPath that keeps an empty name visible to the check of the path.
func joinField(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

func (p *projectionParser) field(path string, v bson.Value) error {
	positional := strings.HasSuffix(path, ".$")
	if positional && !p.find {
		return mongoerr.New(mongoerr.PositionalInPipeline, "Cannot use positional projection in aggregation projection")
	}
	if strings.Contains(path, ".$.") {
		return mongoerr.New(mongoerr.PositionalMidPath, "As of 4.4, it's illegal to specify positional operator in the middle of a path."+
			"Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, "+
			"remove the parts following the '$' and the results will be equivalent.")
	}
	switch {
	case v.Type == bson.TypeDocument:
		if positional {
			return mongoerr.New(mongoerr.PositionalExpression, "positional projection cannot be used with an expression or sub object")
		}
		return p.object(path, v)
	case v.Type == bson.TypeBoolean || bson.IsNumber(v.Type):
		if !Truth(v) {
			return p.exclude(path)
		}
		if positional {
			return p.includePositional(path)
		}
		return p.include(path)
	case positional:
		return mongoerr.New(mongoerr.PositionalLiteral, "positional projection cannot be used with a literal")
	}
	return p.computed(path, v, mongoerr.New(mongoerr.ProjectionExclusionLiteral, "Cannot use an expression %s in an exclusion projection", elementText(path, v)))
}

func (p *projectionParser) include(path string) error {
	if err := p.add(path, &projectionNode{kind: include}); err != nil {
		return err
	}
	if path == "_id" {
		p.idIncluded = true
		return nil
	}
	return p.decide(inclusion, mongoerr.New(mongoerr.ProjectionInclusionMixed, "Cannot do inclusion on field %s in exclusion projection", path))
}

func (p *projectionParser) exclude(path string) error {
	if err := p.add(path, &projectionNode{kind: exclude}); err != nil {
		return err
	}
	if path == "_id" {
		p.idExcluded = true
		return nil
	}
	return p.decide(exclusion, mongoerr.New(mongoerr.ProjectionExclusionMixed, "Cannot do exclusion on field %s in inclusion projection", path))
}

// decide settles what kind of projection this is; mixed is the error if it is another kind already.
func (p *projectionParser) decide(mode projectionMode, mixed *mongoerr.Error) error {
	if p.mode != undecided && p.mode != mode {
		return mixed
	}
	p.mode = mode
	return nil
}

// includePositional compiles "a.$": 1.
func (p *projectionParser) includePositional(path string) error {
	first, _, _ := strings.Cut(path, ".")
	switch {
	case p.positional:
		return mongoerr.New(mongoerr.PositionalTwice, "Cannot specify more than one positional projection per query.")
	case p.elemMatches:
		return mongoerr.New(mongoerr.PositionalAfterElemMatch, "Cannot specify positional operator and $elemMatch.")
	case p.filter == nil:
		return mongoerr.New(mongoerr.PositionalNoFilter, "Projections with a positional operator require a matcher")
	case !filterNames(p.filter.Raw(), first):
		return mongoerr.New(mongoerr.PositionalNotInFilter, "Positional projection '%s' does not match the query document.", path)
	}
	p.positional = true
	if err := p.add(strings.TrimSuffix(path, ".$"), &projectionNode{kind: include, positional: true}); err != nil {
		return err
	}
	return p.decide(inclusion, mongoerr.New(mongoerr.ProjectionInclusionMixed, "Cannot do inclusion on field %s in exclusion projection", path))
}

// filterNames reports whether a filter has a predicate on a field that begins with first.
func filterNames(filter []byte, first string) bool {
	it := bson.Elements(filter)
	for it.Next() {
		key := string(it.Key())
		if head, _, _ := strings.Cut(key, "."); head == first {
			return true
		}
		if key != "$and" && key != "$or" && key != "$nor" {
			continue
		}
		for of := bson.Elements(it.Value().Data); of.Next(); {
			if filterNames(of.Value().Data, first) {
				return true
			}
		}
	}
	return false
}

// object compiles a document in a specification: an operator, an expression, or the specification of fields below path.
func (p *projectionParser) object(path string, v bson.Value) error {
	name, arg, ok := bson.First(v.Data)
	if !ok {
		return mongoerr.New(mongoerr.ProjectionEmptyObject, "An empty sub-projection is not a valid value. Found empty object at path")
	}
	if !strings.HasPrefix(name, "$") || countElements(v.Data) != 1 {
		return p.fields(path, v.Data)
	}
	switch {
	case name == "$meta":
		return mongoerr.New(mongoerr.InvalidPipelineOperator, "$meta is not supported in a projection")
	case name == "$elemMatch":
		return p.elemMatch(path, v, arg)
	case name == "$slice" && p.find:
		isRange, err := p.slice(path, arg)
		if isRange || err != nil {
			return err
		}
	}
	return p.computed(path, v, mongoerr.New(mongoerr.ProjectionExclusionExpression, "Cannot use expression other than $meta in exclusion projection"))
}

func (p *projectionParser) computed(path string, v bson.Value, mixed *mongoerr.Error) error {
	if p.mode != undecided && p.mode != inclusion {
		return mixed
	}
	p.mode = inclusion
	expression, err := ParseExpression(v, p.env)
	if err != nil {
		return err
	}
	return p.add(path, &projectionNode{kind: compute, expression: expression})
}

// elemMatch compiles find's {path: {$elemMatch: …}}.
func (p *projectionParser) elemMatch(path string, v, arg bson.Value) error {
	switch {
	case !p.find:
		return mongoerr.New(mongoerr.InvalidPipelineOperator, "Cannot use $elemMatch in this context")
	case arg.Type != bson.TypeDocument:
		return mongoerr.New(mongoerr.ElemMatchNotObject, "elemMatch: Invalid argument, object required, but got %s", bson.TypeName(arg.Type))
	case p.positional:
		return mongoerr.New(mongoerr.ElemMatchAfterPositional, "Cannot specify positional operator and $elemMatch.")
	case strings.Contains(path, "."):
		return mongoerr.New(mongoerr.ElemMatchNested, "Cannot use $elemMatch projection on a nested field.")
	}
	match, err := ParseFilter(wrapValue(nil, path, v), p.env)
	if err != nil {
		return err
	}
	p.elemMatches = true
	return p.add(path, &projectionNode{kind: elemMatch, match: match})
}

// slice compiles find's {path: {$slice: limit}} and {path: {$slice: [skip, limit]}}. isRange is false for what may be the expression of that name:
// an array that does not begin with a number.
func (p *projectionParser) slice(path string, arg bson.Value) (isRange bool, err error) {
	r, isRange, err := parseSlice(arg)
	if err != nil || !isRange {
		return isRange, err
	}
	p.slicing = true
	return true, p.add(path, &projectionNode{kind: sliceOf, slice: r})
}

func parseSlice(arg bson.Value) (r sliceRange, isRange bool, err error) {
	if n, ok := bson.NumberOf(arg); ok {
		return sliceRange{limit: clampInt32(n)}, true, nil
	}
	if arg.Type != bson.TypeArray {
		return r, true, mongoerr.New(mongoerr.SliceArgument, "$slice only supports numbers and [skip, limit] arrays")
	}
	values := arrayValues(arg.Data)
	if len(values) > 0 && !bson.IsNumber(values[0].Type) {
		return r, false, nil
	}
	if len(values) != 2 {
		return r, true, mongoerr.New(mongoerr.SliceArrayForm, "$slice array argument should be of form [skip, limit]")
	}
	skip, _ := bson.NumberOf(values[0])
	limit, ok := bson.NumberOf(values[1])
	if !ok {
		return r, true, mongoerr.New(mongoerr.SliceLimitNotNumber, "$slice expects the limit argument to be a number, got %s", bson.TypeName(values[1].Type))
	}
	r = sliceRange{skip: clampInt32(skip), limit: clampInt32(limit), skips: true}
	if r.limit <= 0 {
		return r, true, mongoerr.New(mongoerr.SliceLimitNotPositive, "$slice limit must be positive, got %d", r.limit)
	}
	return r, true, nil
}

// clampInt32 cuts a number to a whole one of 32 bits, as $slice does.
func clampInt32(n bson.Number) int64 {
	i, ok := n.TruncInt64()
	if !ok {
		if n.IsNaN() {
			return 0
		}
		i = int64(n.Sign()) << 31
	}
	return max(-1<<31, min(i, 1<<31-1))
}

// add puts a leaf at its path.
func (p *projectionParser) add(path string, leaf *projectionNode) error {
	return p.root.insert(path, leaf)
}

// insert adds a leaf to the tree; two paths of which one is the other or lies below it collide.
func (n *projectionNode) insert(path string, leaf *projectionNode) error {
	if err := checkFieldPath(path); err != nil {
		return err
	}
	parts := strings.Split(path, ".")
	leaf.name, leaf.key = parts[len(parts)-1], []byte(parts[len(parts)-1])
	for i, part := range parts {
		at := n.child([]byte(part))
		last := i == len(parts)-1
		switch {
		case at >= 0 && last:
			return mongoerr.New(mongoerr.ProjectionPathCollision, "Path collision at %s", path)
		case at >= 0 && n.children[at].kind != branch:
			return mongoerr.New(mongoerr.ProjectionPrefixCollision, "Path collision at %s remaining portion %s", path, strings.Join(parts[i+1:], "."))
		case at >= 0:
			n = n.children[at]
		case last:
			n.children = append(n.children, leaf)
		default:
			next := &projectionNode{name: part, key: []byte(part)}
			n.children = append(n.children, next)
			n = next
		}
	}
	return nil
}
