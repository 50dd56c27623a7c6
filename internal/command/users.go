package command

import (
	"context"
	"crypto/rand"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Users are those who may log in.
type Users interface {
	// Users returns all as they are now.
	Users() *auth.Set
	// CreateUser keeps a new user. The error is code 51003 when there is one of that name.
	CreateUser(ctx context.Context, u auth.User) error
	// ChangeUser changes a user and keeps it. The errors are UserNotFound and those of change.
	ChangeUser(ctx context.Context, n auth.UserName, change func(*auth.User) error) error
	// DropUsers forgets the users that match, and returns how many there were.
	DropUsers(ctx context.Context, match func(auth.UserName) bool) (int, error)
}

// nobody is no users at all.
type nobody struct{}

var noUsers = auth.NewSet(nil)

func (nobody) Users() *auth.Set { return noUsers }

func (nobody) CreateUser(context.Context, auth.User) error {
	return mongoerr.New(mongoerr.CommandNotSupported, "this gateway keeps no users")
}

func (nobody) ChangeUser(_ context.Context, n auth.UserName, _ func(*auth.User) error) error {
	return mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", n)
}

func (nobody) DropUsers(context.Context, func(auth.UserName) bool) (int, error) { return 0, nil }

// registerUsers puts the commands about users into the table.
func (t *Table) registerUsers() {
	t.Register("saslStart", Entry{Handler: t.saslStart, Stable: true, NoSession: true, Secret: true,
		Fields: []string{"mechanism", "payload", "options", "autoAuthorize"}, Help: "begins to log in"})
	t.Register("saslContinue", Entry{Handler: t.saslContinue, Stable: true, NoSession: true, Secret: true,
		Fields: []string{"conversationId", "payload"}, Help: "goes on logging in"})
	t.Register("authenticate", Entry{Handler: t.authenticate, Stable: true, NoSession: true, NoTarget: true, Secret: true,
		Fields: []string{"mechanism", "user", "key", "nonce"}, Help: "logs in with a certificate; passwords take saslStart"})
	t.Register("logout", Entry{Handler: t.logout, NoSession: true, Fields: none, Help: "forgets who is logged in"})
	t.Register("connectionStatus", Entry{Handler: t.connectionStatus, NoSession: true, Fields: []string{"showPrivileges"}, Help: "who is logged in"})

	changes := []string{"pwd", "customData", "roles", "digestPassword", "mechanisms"}
	t.Register("createUser", Entry{Handler: t.createUser, NoTarget: true, Writes: true, Secret: true, Fields: changes, Help: "makes a user"})
	t.Register("updateUser", Entry{Handler: t.updateUser, NoTarget: true, Writes: true, Secret: true, Fields: changes, Help: "changes a user"})
	t.Register("dropUser", Entry{Handler: t.dropUser, NoTarget: true, Writes: true, Fields: none, Help: "removes a user"})
	t.Register("dropAllUsersFromDatabase", Entry{Handler: t.dropAllUsers, Writes: true, Fields: none, Help: "removes the users of a database"})
	t.Register("grantRolesToUser", Entry{Handler: t.grantRoles, NoTarget: true, Writes: true, Fields: []string{"roles"}, Help: "gives a user roles"})
	t.Register("revokeRolesFromUser", Entry{Handler: t.revokeRoles, NoTarget: true, Writes: true, Fields: []string{"roles"}, Help: "takes roles from a user"})
	t.Register("usersInfo", Entry{Handler: t.usersInfo, NoTarget: true, Help: "the users",
		Fields: []string{"showPrivileges", "showCredentials", "showCustomData", "showAuthenticationRestrictions", "filter"}})
	t.Register("rolesInfo", Entry{Handler: t.rolesInfo, NoTarget: true, Help: "the roles",
		Fields: []string{"showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions"}})
}

func (t *Table) createUser(ctx context.Context, req *Request, _ *Reply) error {
	name, err := userArgument(req)
	if err != nil {
		return err
	}
	u := auth.User{UserName: auth.UserName{Name: name, Database: req.Database}}
	rand.Read(u.UUID[:])
	u.UUID[6], u.UUID[8] = u.UUID[6]&0x0f|0x40, u.UUID[8]&0x3f|0x80 // version 4, variant 1 of RFC 9562
	if _, ok := bson.Get(req.Body, "pwd"); !ok && req.Database != auth.External {
		return mongoerr.New(mongoerr.BadValue, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	}
	if _, ok := bson.Get(req.Body, "roles"); !ok {
		return missing("createUser.roles")
	}
	if err := changeUser(req, &u); err != nil {
		return err
	}
	return t.deps.Users.CreateUser(ctx, u)
}

func (t *Table) updateUser(ctx context.Context, req *Request, _ *Reply) error {
	if !hasAny(req.Body, "pwd", "customData", "roles", "mechanisms") {
		return mongoerr.New(mongoerr.BadValue, "Must specify at least one field to update in updateUser")
	}
	return t.change(ctx, req, func(u *auth.User) error { return changeUser(req, u) })
}

func hasAny(doc bson.Document, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		_, ok := bson.Get(doc, key)
		return ok
	})
}

// change changes the user that the command names.
func (t *Table) change(ctx context.Context, req *Request, change func(*auth.User) error) error {
	name, err := userArgument(req)
	if err != nil {
		return err
	}
	return t.deps.Users.ChangeUser(ctx, auth.UserName{Name: name, Database: req.Database}, change)
}

// changeUser applies the fields of createUser and updateUser.
func changeUser(req *Request, u *auth.User) error {
	if v, ok := bson.Get(req.Body, "roles"); ok {
		roles, err := rolesOf(v, req)
		if err != nil {
			return err
		}
		u.Roles = roles
	}
	if v, ok := bson.Get(req.Body, "customData"); ok {
		doc, isDoc := v.DocumentOK()
		if !isDoc {
			return wrongType(req.Name+".customData", v.Type, "object")
		}
		u.CustomData = slices.Clone(doc)
	}
	return changePassword(req, u)
}

func (t *Table) dropUser(ctx context.Context, req *Request, _ *Reply) error {
	name, err := userArgument(req)
	if err != nil {
		return err
	}
	dropped := auth.UserName{Name: name, Database: req.Database}
	n, err := t.deps.Users.DropUsers(ctx, func(n auth.UserName) bool { return n == dropped })
	if err == nil && n == 0 {
		err = mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", dropped)
	}
	return err
}

func (t *Table) dropAllUsers(ctx context.Context, req *Request, reply *Reply) error {
	n, err := t.deps.Users.DropUsers(ctx, func(n auth.UserName) bool { return n.Database == req.Database })
	reply.Elements = bsoncore.AppendInt64Element(reply.Elements, "n", int64(n))
	return err
}

func (t *Table) grantRoles(ctx context.Context, req *Request, _ *Reply) error {
	roles, err := rolesArgument(req)
	if err != nil {
		return err
	}
	return t.change(ctx, req, func(u *auth.User) error {
		for _, r := range roles {
			if !u.Has(r) {
				u.Roles = append(slices.Clone(u.Roles), r)
			}
		}
		return nil
	})
}

func (t *Table) revokeRoles(ctx context.Context, req *Request, _ *Reply) error {
	roles, err := rolesArgument(req)
	if err != nil {
		return err
	}
	return t.change(ctx, req, func(u *auth.User) error {
		u.Roles = slices.DeleteFunc(slices.Clone(u.Roles), func(r auth.Role) bool { return slices.Contains(roles, r) })
		return nil
	})
}
