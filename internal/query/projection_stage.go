package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// parseStageProjection compiles the specification of a $project stage: inclusion, exclusion and computed fields; find's $slice by number,
// $elemMatch and the positional "a.$" are refused.
func parseStageProjection(spec bson.Document, env Env) (*Projection, error) {
	if countElements(spec) == 0 {
		return nil, mongoerr.New(mongoerr.ProjectionEmpty, "Invalid $project :: caused by :: projection specification must have at least one field")
	}
	p := projectionParser{env: env, root: &projectionNode{}}
	projection, err := p.parse(spec)
	return projection, invalidStage("$project", err)
}

// parseAddFields compiles the specification of $addFields or $set (stage is the name for errors): computed values at dotted
// paths, everything else kept. A path that meets an array is set in each element; what is no document on the way is replaced by
// one.
func parseAddFields(stage string, spec bson.Document, env Env) (*Projection, error) {
	root := &projectionNode{}
	if countElements(spec) == 0 {
		return nil, mongoerr.New(mongoerr.AddFieldsEmpty, "Invalid %s :: caused by :: specification must have at least one field", stage)
	}
	if err := addedFields(root, "", spec, env); err != nil {
		return nil, invalidStage(stage, err)
	}
	root.seal(addition)
	return &Projection{root: root, mode: addition}, nil
}

// addedFields compiles the elements of an $addFields, or of a document in it that stands for the path prefix.
func addedFields(root *projectionNode, prefix string, spec []byte, env Env) error {
	it := bson.Elements(spec)
	for it.Next() {
		path, v := joinField(prefix, string(it.Key())), it.Value()
		if v.Type == bson.TypeDocument {
			name, _, ok := bson.First(v.Data)
			if !ok {
				return mongoerr.New(mongoerr.AddFieldsEmptyObject, "an empty object is not a valid value. Found empty object at path %s", path)
			}
			if !strings.HasPrefix(name, "$") {
				if err := addedFields(root, path, v.Data, env); err != nil {
					return err
				}
				continue
			}
		}
		expression, err := ParseExpression(v, env)
		if err != nil {
			return err
		}
		err = root.insert(path, &projectionNode{kind: compute, expression: expression})
		if mongoerr.Is(err, mongoerr.ProjectionPathCollision) || mongoerr.Is(err, mongoerr.ProjectionPrefixCollision) {
			return mongoerr.New(mongoerr.AddFieldsCollision, "specification contains two conflicting paths. "+
				"Cannot specify '%s' beside a path that it equals, holds or lies in", path)
		}
		if err != nil {
			return err
		}
	}
	if it.Err() != nil {
		return mongoerr.New(mongoerr.InvalidBSON, "the specification is malformed")
	}
	return nil
}

// parseUnset compiles the argument of a $unset stage: a path or an array of paths.
func parseUnset(arg bson.Value, _ Env) (*Projection, error) {
	paths := []bson.Value{arg}
	switch arg.Type {
	case bson.TypeString:
	case bson.TypeArray:
		if paths = arrayValues(arg.Data); len(paths) == 0 {
			return nil, mongoerr.New(mongoerr.UnsetEmpty, "$unset specification must be a string or an array with at least one field")
		}
	default:
		return nil, mongoerr.New(mongoerr.UnsetInvalid, "$unset specification must be a string or an array")
	}
	root := &projectionNode{}
	for _, v := range paths {
		path, ok := stringOf(v)
		if !ok || v.Type != bson.TypeString {
			return nil, mongoerr.New(mongoerr.UnsetNotString, "$unset specification must be a string or an array containing only string values")
		}
		if err := root.insert(path, &projectionNode{kind: exclude}); err != nil {
			return nil, invalidStage("$unset", err)
		}
	}
	root.seal(exclusion)
	return &Projection{root: root, mode: exclusion}, nil
}

// invalidStage says in an error in which stage it is.
func invalidStage(stage string, err error) error {
	if err == nil {
		return nil
	}
	e := *mongoerr.From(err)
	e.Message = "Invalid " + stage + " :: caused by :: " + e.Message
	return &e
}
