package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// WithConstants adds an update statement's c to the command's variables; c goes before let where both name one. Error 51198 for constants beside
// an update that is no pipeline.
func (e Env) WithConstants(constants bson.Document, update bson.Value) (Env, error) {
	if constants == nil {
		return e, nil
	}
	if update.Type != bson.TypeArray {
		return e, mongoerr.New(51198, "Constant values may only be specified for pipeline updates")
	}
	at, vars := bsoncore.AppendDocumentStart(make([]byte, 0, len(constants)+len(e.Let)))
	vars = append(vars, constants[4:len(constants)-1]...)
	it := bson.Elements(e.Let)
	for e.Let != nil && it.Next() {
		if _, shadowed := bson.Get(constants, string(it.Key())); !shadowed {
			vars = append(vars, it.Raw()...)
		}
	}
	e.Let, _ = bsoncore.AppendDocumentEnd(vars, at)
	return e, nil
}
