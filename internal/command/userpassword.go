package command

import (
	"slices"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// changePassword makes credentials of a new password, and drops those of mechanisms that the user is to have no more.
func changePassword(req *Request, u *auth.User) error {
	if u.Database == auth.External {
		if hasAny(req.Body, "pwd", "mechanisms") {
			return mongoerr.New(mongoerr.BadValue, "Cannot set the password for users defined on the '$external' database")
		}
		return nil
	}
	if v, ok := bson.Get(req.Body, "digestPassword"); ok && !isTrue(v) {
		return mongoerr.New(mongoerr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
	}
	mechanisms, named, err := mechanismsOf(req, u)
	if err != nil {
		return err
	}
	v, ok := bson.Get(req.Body, "pwd")
	if !ok {
		if !named {
			return nil
		}
		return keepMechanisms(u, mechanisms)
	}
	password, ok := v.StringValueOK()
	if !ok {
		return wrongType(req.Name+".pwd", v.Type, "string")
	}
	credentials := make(map[auth.Mechanism]auth.Credential, len(mechanisms))
	for _, m := range mechanisms {
		c, err := auth.NewCredential(m, u.Name, password)
		if err != nil {
			return mongoerr.New(mongoerr.BadValue, "%v", err)
		}
		credentials[m] = c
	}
	u.Credentials = credentials
	return nil
}

// keepMechanisms takes away a user's credentials of all other mechanisms: without the password there are no new ones.
func keepMechanisms(u *auth.User, mechanisms []auth.Mechanism) error {
	kept := make(map[auth.Mechanism]auth.Credential, len(mechanisms))
	for _, m := range mechanisms {
		c, ok := u.Credentials[m]
		if !ok {
			return mongoerr.New(mongoerr.BadValue, "mechanisms field must be a subset of previously set mechanisms")
		}
		kept[m] = c
	}
	u.Credentials = kept
	return nil
}

// mechanismsOf reads the field mechanisms; where it's absent, the user keeps those it has, and a new one gets both.
func mechanismsOf(req *Request, u *auth.User) (list []auth.Mechanism, named bool, err error) {
	v, ok := bson.Get(req.Body, "mechanisms")
	if !ok {
		if list = u.Mechanisms(); len(list) == 0 {
			list = auth.Mechanisms()
		}
		return list, false, nil
	}
	a, ok := v.ArrayOK()
	if !ok {
		return nil, true, wrongType(req.Name+".mechanisms", v.Type, "array")
	}
	it := bson.Elements(a)
	for it.Next() {
		name, _ := it.Value().StringValueOK()
		if !slices.Contains(auth.Mechanisms(), auth.Mechanism(name)) {
			return nil, true, mongoerr.New(mongoerr.BadValue, "Unknown auth mechanism '%s'", name)
		}
		list = append(list, auth.Mechanism(name))
	}
	if len(list) == 0 {
		return nil, true, mongoerr.New(mongoerr.BadValue, "mechanisms field must not be empty")
	}
	return list, true, nil
}
