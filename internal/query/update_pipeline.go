package query

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// updatePipeline is an update of aggregation stages; each makes one document of one document
// (https://www.mongodb.com/docs/manual/tutorial/update-documents-with-aggregation-pipeline/).
type updatePipeline []updateStage

// updateStage is one stage of an updatePipeline: a projection, or the expression of a new root.
type updateStage struct {
	projection *Projection
	root       *Expression
}

// parseUpdatePipeline compiles the stages that an update can have.
func parseUpdatePipeline(stages bson.Array, env Env) (updatePipeline, error) {
	pipeline := updatePipeline{}
	it := bson.Elements(stages)
	for it.Next() {
		if it.Value().Type != bson.TypeDocument {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		name, arg, _ := bson.First(it.Value().Data)
		if countElements(it.Value().Data) != 1 {
			return nil, mongoerr.New(mongoerr.PipelineStageFields, "A pipeline stage specification object must contain exactly one field.")
		}
		stage, err := parseUpdateStage(name, arg, env)
		if err != nil {
			return nil, err
		}
		pipeline = append(pipeline, stage)
	}
	if it.Err() != nil {
		return nil, mongoerr.New(mongoerr.InvalidBSON, "the update's pipeline is malformed")
	}
	return pipeline, nil
}

// CheckUpdateStages returns MongoDB's error for an update whose pipeline has a stage that MongoDB does not have: it fails the whole command, where
// a stage that is only out of place fails its statement.
func CheckUpdateStages(update bson.Value) error {
	if update.Type != bson.TypeArray {
		return nil
	}
	it := bson.Elements(update.Data)
	for it.Next() {
		if it.Value().Type != bson.TypeDocument {
			continue
		}
		if name, _, ok := bson.First(it.Value().Data); ok && !isStage(name) {
			return unknownStage(name)
		}
	}
	return nil
}

func parseUpdateStage(name string, arg bson.Value, env Env) (stage updateStage, err error) {
	switch name {
	case "$set", "$addFields":
		if arg.Type != bson.TypeDocument {
			return stage, mongoerr.New(mongoerr.AddFieldsNotObject, "%s specification stage must be an object, got %s", name, bson.TypeName(arg.Type))
		}
		stage.projection, err = parseAddFields(name, arg.Data, env)
	case "$project":
		if arg.Type != bson.TypeDocument {
			return stage, mongoerr.New(mongoerr.ProjectNotObject, "$project specification must be an object")
		}
		stage.projection, err = parseStageProjection(arg.Data, env)
	case "$unset":
		stage.projection, err = parseUnset(arg, env)
	case "$replaceWith":
		stage.root, err = ParseExpression(arg, env)
	case "$replaceRoot":
		var newRoot bson.Value
		if newRoot, err = newRootOf(arg); err == nil {
			stage.root, err = ParseExpression(newRoot, env)
		}
	default:
		if !isStage(name) {
			return stage, unknownStage(name)
		}
		err = mongoerr.New(mongoerr.InvalidOptions, "%s is not allowed to be used within an update", name)
	}
	return stage, err
}

// newRootOf returns the expression of {$replaceRoot: {newRoot: expression}}.
func newRootOf(arg bson.Value) (newRoot bson.Value, err error) {
	if arg.Type != bson.TypeDocument {
		return newRoot, mongoerr.New(mongoerr.ReplaceRootNotObject, "expected object as specification for $replaceRoot stage, got %s", bson.TypeName(arg.Type))
	}
	it := bson.Elements(arg.Data)
	for it.Next() {
		if string(it.Key()) != "newRoot" {
			return newRoot, mongoerr.New(mongoerr.IDLUnknownField, "BSON field '$replaceRoot.%s' is an unknown field.", it.Key())
		}
		newRoot = it.Value()
	}
	if newRoot.Type == 0 {
		return newRoot, mongoerr.New(mongoerr.IDLMissingField, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return newRoot, nil
}

// maxBetweenStages is the largest document, in bytes, that one stage hands to the next (MongoDB's limit of a buffer).
const maxBetweenStages = 64 << 20

// apply appends the document that the stages make of doc, with doc's _id.
func (p updatePipeline) apply(dst []byte, doc bson.Document) ([]byte, bool, error) {
	next := doc
	for _, stage := range p {
		out, err := stage.apply(next)
		if err != nil {
			return dst, false, err
		}
		if len(out) > maxBetweenStages {
			return dst, false, updateTooLarge()
		}
		next = out
	}
	dst, changed, err := appendReplaced(dst, doc, next)
	if err == nil && changed && valueDepth(bson.Value{Type: bson.TypeDocument, Data: next}) > bson.MaxDepth {
		return dst, false, tooDeep()
	}
	return dst, changed, err
}

func (s updateStage) apply(doc bson.Document) (bson.Document, error) {
	if s.projection != nil {
		return s.projection.Apply(nil, doc)
	}
	var scratch Scratch
	v, err := s.root.Eval(doc, &scratch)
	if err != nil {
		return nil, err
	}
	if v.Type != bson.TypeDocument {
		return nil, errNewRoot(v, doc)
	}
	return v.Data, nil
}
