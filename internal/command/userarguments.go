package command

import (
	"slices"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func rolesArgument(req *Request) ([]auth.Role, error) {
	v, ok := bson.Get(req.Body, "roles")
	if !ok {
		return nil, missing(req.Name + ".roles")
	}
	roles, err := rolesOf(v, req)
	if err == nil && len(roles) == 0 {
		err = mongoerr.New(mongoerr.BadValue, "%s command requires a non-empty \"roles\" array", req.Name)
	}
	return roles, err
}

// rolesOf reads an array of roles: names in the command's database, or {role, db}. One that there is not is RoleNotFound.
func rolesOf(v bson.Value, req *Request) ([]auth.Role, error) {
	a, ok := v.ArrayOK()
	if !ok {
		return nil, wrongType(req.Name+".roles", v.Type, "array")
	}
	var roles []auth.Role
	it := bson.Elements(a)
	for it.Next() {
		name, database, err := nameAndDatabase(it.Value(), "role", req.Database)
		if err != nil {
			return nil, err
		}
		r := auth.Role{Name: name, Database: database}
		if err := auth.CheckRole(r); err != nil {
			return nil, err
		}
		if !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	return roles, nil
}

// nameAndDatabase reads "name", or {user: name, db} with the key that is given.
func nameAndDatabase(v bson.Value, key, database string) (string, string, error) {
	if name, ok := v.StringValueOK(); ok {
		return name, database, nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return "", "", mongoerr.New(mongoerr.BadValue, "a %s must be a string or an object, not %s", key, bson.TypeName(v.Type))
	}
	nameValue, _ := bson.Get(doc, key)
	name, hasName := nameValue.StringValueOK()
	dbValue, _ := bson.Get(doc, "db")
	db, hasDB := dbValue.StringValueOK()
	if !hasName || !hasDB {
		return "", "", mongoerr.New(mongoerr.BadValue, "a %s must have the strings '%s' and 'db'", key, key)
	}
	return name, db, nil
}

func userArgument(req *Request) (string, error) {
	name, ok := req.Argument.StringValueOK()
	if !ok {
		return "", wrongType(req.Name+"."+req.Name, req.Argument.Type, "string")
	}
	if name == "" {
		return "", mongoerr.New(mongoerr.BadValue, "User document needs 'user' field to be non-empty")
	}
	return name, nil
}

// usersNamed reads one user or an array of users.
func usersNamed(v bson.Value, database string) ([]auth.UserName, error) {
	var names []auth.UserName
	for _, v := range oneOrMore(v) {
		name, db, err := nameAndDatabase(v, "user", database)
		if err != nil {
			return nil, err
		}
		names = append(names, auth.UserName{Name: name, Database: db})
	}
	return names, nil
}

// oneOrMore returns the values of an array, or the one value.
func oneOrMore(v bson.Value) []bson.Value {
	a, ok := v.ArrayOK()
	if !ok {
		return []bson.Value{v}
	}
	var list []bson.Value
	it := bson.Elements(a)
	for it.Next() {
		list = append(list, it.Value())
	}
	return list
}
