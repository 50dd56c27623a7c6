package query

import (
	"bytes"
	"slices"

	"oxbow/internal/bson"
)

// SurelyLeaves reports whether a look at the bytes of an update tells that Touches says no for path: it has operators, and none names a path that begins
// as this one does, nor one that begins with a $. False says nothing, and true not that the update is valid.
func SurelyLeaves(update bson.Value, path bson.Path) bool {
	if update.Type != bson.TypeDocument || len(path.Parts()) == 0 {
		return false
	}
	top, none := path.Parts()[0], true
	it := bson.Elements(update.Data)
	for it.Next() {
		fields := it.Value()
		if operatorParsers[string(it.Key())] == nil || fields.Type != bson.TypeDocument { // $rename has a second path
			return false
		}
		none = false
		of := bson.Elements(fields.Data)
		for of.Next() {
			first, _, _ := bytes.Cut(of.Key(), dot)
			if len(first) == 0 || first[0] == '$' || string(first) == top {
				return false
			}
		}
	}
	return !none
}

var dot = []byte{'.'}

// Touches reports whether the update can change the value at path in a document that it is applied to: an operator on it, on a
// prefix of it or below it, a replacement, a pipeline. v is the value that every document has there afterwards if that is known (constant;
// a $set of it, a replacement), with Type 0 if it is missing then. _id is never touched: Apply refuses that. $setOnInsert
// touches nothing: see Upsert.
func (u *Update) Touches(path bson.Path) (touches bool, v bson.Value, constant bool) {
	parts := path.Parts()
	switch {
	case len(parts) == 0:
		return true, v, false
	case parts[0] == "_id":
		return false, v, false
	case u.pipeline != nil:
		return u.pipeline.touches(path)
	case u.replace != nil:
		v, constant = constantAt(bson.Value{Type: bson.TypeDocument, Data: u.replace.doc}, parts)
		return true, v, constant
	}
	return u.tree.touches(parts, len(parts) == 1)
}

// touches follows the rest of a path; top says that the path has one part, so no array can hide what is there.
func (n *updateNode) touches(rest []string, top bool) (bool, bson.Value, bool) {
	switch {
	case n.op != nil:
		return operatorTouches(n.op, rest, top)
	case len(rest) == 0, n.array, n.positional != nil:
		return true, bson.Value{}, false
	}
	if i := n.child([]byte(rest[0])); i >= 0 {
		return n.children[i].touches(rest[1:], top)
	}
	// In an array, what an index names is also what the rest of the path may be found in.
	return n.key != nil && slices.ContainsFunc(n.children, func(c *updateNode) bool { return c.index >= 0 }), bson.Value{}, false
}

// operatorTouches says what an operator does to the value at rest below its own path.
func operatorTouches(op fieldOperator, rest []string, top bool) (touches bool, v bson.Value, constant bool) {
	switch op := op.(type) {
	case setOnInsert:
		return false, v, false
	case setField:
		v, constant = constantAt(op.value, rest)
		return true, v, constant
	case unsetField, renameSource:
		return true, v, top
	}
	return true, v, false
}

// constantAt returns the value at a path below v: known unless there is an array on the way.
func constantAt(v bson.Value, rest []string) (bson.Value, bool) {
	for _, part := range rest {
		if v.Type == bson.TypeArray {
			return bson.Value{}, false
		}
		next, ok := bson.Value{}, false
		if v.Type == bson.TypeDocument {
			next, ok = bson.Get(v.Data, part)
		}
		if !ok {
			return bson.Value{}, true
		}
		v = next
	}
	return v, true
}

// touches is Touches for a pipeline: what its last stage that can change the value leaves there.
func (p updatePipeline) touches(path bson.Path) (touches bool, v bson.Value, constant bool) {
	for _, stage := range p {
		if stage.projection == nil {
			touches, v, constant = true, bson.Value{}, false
			continue
		}
		if changes, w, known := stage.projection.touches(path); changes {
			touches, v, constant = true, w, known
		}
	}
	return touches, v, constant
}
