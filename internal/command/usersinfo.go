package command

import (
	"context"
	"encoding/base64"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// usersInfo lists users: {usersInfo: 1} those of the database, a name, {user, db}, an array of these, or {forAllDBs: true}.
func (t *Table) usersInfo(_ context.Context, req *Request, reply *Reply) error {
	asked, err := usersAsked(req)
	if err != nil {
		return err
	}
	filterDoc := emptyDocument
	if v, ok := bson.Get(req.Body, "filter"); ok {
		if filterDoc, ok = v.DocumentOK(); !ok {
			return wrongType("usersInfo.filter", v.Type, "object")
		}
	}
	filter, err := query.ParseFilter(filterDoc, t.env())
	if err != nil {
		return err
	}
	showData := true
	if v, ok := bson.Get(req.Body, "showCustomData"); ok {
		showData = isTrue(v)
	}
	options := userShown{credentials: truthy(req.Body, "showCredentials"), privileges: truthy(req.Body, "showPrivileges"), customData: showData}
	var docs []bson.Document
	for _, u := range t.deps.Users.Users().All() {
		if asked.has(u.UserName, req.Database) {
			docs = append(docs, userDocument(u, options))
		}
	}
	if docs, err = matching(docs, filter); err != nil {
		return err
	}
	reply.Elements = appendDocuments(reply.Elements, "users", docs)
	return nil
}

// usersAskedFor are the users that usersInfo's argument names: all, all of the command's database, or those of names.
type usersAskedFor struct {
	everywhere, inDatabase bool
	names                  []auth.UserName
}

// usersAsked reads usersInfo's argument. It is what the answer and the check of who may have it both go by.
func usersAsked(req *Request) (usersAskedFor, error) {
	if bson.IsNumber(req.Argument.Type) {
		return usersAskedFor{inDatabase: true}, nil
	}
	if doc, ok := req.Argument.DocumentOK(); ok && truthy(doc, "forAllDBs") {
		if req.Database != "admin" {
			return usersAskedFor{}, mongoerr.New(mongoerr.Unauthorized, "usersInfo with forAllDBs may only be run against the admin database.")
		}
		return usersAskedFor{everywhere: true}, nil
	}
	names, err := usersNamed(req.Argument, req.Database)
	return usersAskedFor{names: names}, err
}

// has reports whether a user is among them.
func (a usersAskedFor) has(n auth.UserName, database string) bool {
	return a.everywhere || a.inDatabase && n.Database == database || slices.Contains(a.names, n)
}

// userShown says what of a user is shown.
type userShown struct{ credentials, privileges, customData bool }

func userDocument(u *auth.User, show userShown) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "_id", u.Database+"."+u.Name)
	dst = bsoncore.AppendBinaryElement(dst, "userId", 4, u.UUID[:])
	dst = bsoncore.AppendStringElement(dst, "user", u.Name)
	dst = bsoncore.AppendStringElement(dst, "db", u.Database)
	if u.CustomData != nil && show.customData {
		dst = bsoncore.AppendDocumentElement(dst, "customData", u.CustomData)
	}
	var roles []bson.Document
	for _, r := range u.Roles {
		roles = append(roles, nameDocument("role", r.Name, r.Database))
	}
	dst = appendDocuments(dst, "roles", roles)
	var mechanisms []string
	for _, m := range u.Mechanisms() {
		mechanisms = append(mechanisms, string(m))
	}
	if u.Database == auth.External {
		mechanisms = []string{"external"}
	}
	dst = appendArray(dst, "mechanisms", mechanisms)
	if show.credentials {
		dst = appendCredentials(dst, u)
	}
	if show.privileges {
		dst = appendDocuments(dst, "inheritedPrivileges", privilegeDocuments(u))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func appendCredentials(dst []byte, u *auth.User) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "credentials")
	text := base64.StdEncoding.EncodeToString
	for _, m := range u.Mechanisms() {
		c := u.Credentials[m]
		var one int32
		one, dst = bsoncore.AppendDocumentElementStart(dst, string(m))
		dst = bsoncore.AppendInt32Element(dst, "iterationCount", int32(c.Iterations))
		dst = bsoncore.AppendStringElement(dst, "salt", text(c.Salt))
		dst = bsoncore.AppendStringElement(dst, "storedKey", text(c.StoredKey))
		dst = bsoncore.AppendStringElement(dst, "serverKey", text(c.ServerKey))
		dst, _ = bsoncore.AppendDocumentEnd(dst, one)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
