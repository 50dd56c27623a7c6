package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
)

// rolesInfo lists roles. All are built in, so a list of the database's own ({rolesInfo: 1}) has them only with showBuiltinRoles.
func (t *Table) rolesInfo(_ context.Context, req *Request, reply *Reply) error {
	var roles []auth.Role
	if bson.IsNumber(req.Argument.Type) {
		if truthy(req.Body, "showBuiltinRoles") {
			for _, name := range auth.RoleNames() {
				roles = append(roles, auth.Role{Name: name, Database: req.Database})
			}
		}
	} else {
		for _, v := range oneOrMore(req.Argument) {
			name, database, err := nameAndDatabase(v, "role", req.Database)
			if err != nil {
				return err
			}
			roles = append(roles, auth.Role{Name: name, Database: database})
		}
	}
	var docs []bson.Document
	for _, r := range roles {
		if auth.CheckRole(r) != nil {
			continue // MongoDB leaves out what there is not
		}
		docs = append(docs, roleDocument(r))
	}
	reply.Elements = appendDocuments(reply.Elements, "roles", docs)
	return nil
}

func roleDocument(r auth.Role) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "role", r.Name)
	dst = bsoncore.AppendStringElement(dst, "db", r.Database)
	dst = bsoncore.AppendBooleanElement(dst, "isBuiltin", true)
	dst = appendDocuments(dst, "roles", nil)
	dst = appendDocuments(dst, "inheritedRoles", nil)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
