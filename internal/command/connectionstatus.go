package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
)

// connectionStatus tells who the client is and what it may do.
func (t *Table) connectionStatus(_ context.Context, req *Request, reply *Reply) error {
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "authInfo")
	user := t.userOf(req.Conn)
	var users, roles, privileges []bson.Document
	if user != nil {
		users = []bson.Document{nameDocument("user", user.Name, user.Database)}
		for _, r := range user.Roles {
			roles = append(roles, nameDocument("role", r.Name, r.Database))
		}
		privileges = privilegeDocuments(user)
	}
	dst = appendDocuments(dst, "authenticatedUsers", users)
	dst = appendDocuments(dst, "authenticatedUserRoles", roles)
	if truthy(req.Body, "showPrivileges") {
		dst = appendDocuments(dst, "authenticatedUserPrivileges", privileges)
	}
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}

func nameDocument(kind, name, database string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, kind, name)
	dst = bsoncore.AppendStringElement(dst, "db", database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// privilegeDocuments lists what a user may do as {resource, actions}.
func privilegeDocuments(u *auth.User) []bson.Document {
	var out []bson.Document
	add := func(resource bson.Document, actions auth.Actions) {
		if actions == 0 {
			return
		}
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = bsoncore.AppendDocumentElement(dst, "resource", resource)
		dst = appendArray(dst, "actions", actions.Names())
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		out = append(out, dst)
	}
	p := u.Privileges()
	for _, database := range p.Databases() {
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = bsoncore.AppendStringElement(dst, "db", database)
		dst = bsoncore.AppendStringElement(dst, "collection", "")
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		add(dst, p.OnDatabase(database))
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendBooleanElement(dst, "cluster", true)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	add(dst, p.OnCluster())
	return out
}
