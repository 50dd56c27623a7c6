package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// usersStored is the catalog's collection of the users that createUser made:
//
//	{_id: "database.name", user, db: string, uuid: UUID, roles: [{role, db: string}], credentials: {mechanism: string, …}, customData: {…}}
//
// A credential is written as in the configuration.
const usersStored = "users"

// users are the users of the configuration and those that commands made. One of the configuration hides one of its name that is stored.
type users struct {
	changes semaphore // one change at a time, held over the write
	stored  []auth.User
	now     atomic.Pointer[auth.Set]
}

// Users returns the users as they are now.
func (c *Catalog) Users() *auth.Set { return c.users.now.Load() }

// loadUsers reads the stored users and publishes them with those of the configuration.
func (c *Catalog) loadUsers(ctx context.Context, configured []auth.User) error {
	docs, err := c.store.all(ctx, usersStored)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		u, err := parseUser(doc)
		if err != nil {
			return err
		}
		c.users.stored = append(c.users.stored, u)
	}
	c.publishUsers(configured)
	return nil
}

func (c *Catalog) publishUsers(configured []auth.User) {
	all := slices.Clone(c.users.stored)
	for _, u := range configured {
		u.Configured = true
		all = append(all, u)
	}
	c.users.now.Store(auth.NewSet(c.users.now.Load(), all...))
}

// CreateUser keeps a new user.
func (c *Catalog) CreateUser(ctx context.Context, u auth.User) error {
	return c.changeUsers(ctx, func() error {
		if c.Users().User(u.UserName) != nil {
			return mongoerr.New(mongoerr.UserExists, "User %q already exists", u.UserName.String())
		}
		return c.keepUser(ctx, u)
	})
}

// ChangeUser changes a user and keeps it.
func (c *Catalog) ChangeUser(ctx context.Context, n auth.UserName, change func(*auth.User) error) error {
	return c.changeUsers(ctx, func() error {
		now := c.Users().User(n)
		if now == nil {
			return mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", n)
		}
		if now.Configured {
			return errConfigured(n)
		}
		u := *now
		if err := change(&u); err != nil {
			return err
		}
		return c.keepUser(ctx, u)
	})
}

func errConfigured(n auth.UserName) error {
	return mongoerr.New(mongoerr.IllegalOperation, "user '%s' stands in the configuration and changes there", n)
}

// keepUser stores a user in place of one of its name.
func (c *Catalog) keepUser(ctx context.Context, u auth.User) error {
	if err := c.store.put(ctx, usersStored, []bson.Document{userDocument(u)}); err != nil {
		return err
	}
	c.users.stored = append(slices.DeleteFunc(slices.Clone(c.users.stored), func(o auth.User) bool { return o.UserName == u.UserName }), u)
	return nil
}

// DropUsers forgets the users that match, and returns how many there were. One that stands in the configuration is an error before anything is done.
func (c *Catalog) DropUsers(ctx context.Context, match func(auth.UserName) bool) (n int, err error) {
	err = c.changeUsers(ctx, func() error {
		var ids []string
		for _, u := range c.Users().All() {
			if !match(u.UserName) {
				continue
			}
			if u.Configured {
				return errConfigured(u.UserName)
			}
			ids = append(ids, userID(u.UserName))
		}
		if err := c.store.delete(ctx, usersStored, ids); err != nil {
			return err
		}
		n = len(ids)
		c.users.stored = slices.DeleteFunc(slices.Clone(c.users.stored), func(u auth.User) bool { return match(u.UserName) })
		return nil
	})
	return n, err
}

// changeUsers runs a change of the stored users alone, and publishes what it left.
func (c *Catalog) changeUsers(ctx context.Context, change func() error) error {
	if err := c.users.changes.acquire(ctx); err != nil {
		return err
	}
	defer c.users.changes.release()
	if err := change(); err != nil {
		return err
	}
	c.publishUsers(c.Snapshot().config.Users)
	return nil
}

func userID(n auth.UserName) string { return n.Database + "." + n.Name }

func userDocument(u auth.User) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "_id", userID(u.UserName))
	dst = bsoncore.AppendStringElement(dst, "user", u.Name)
	dst = bsoncore.AppendStringElement(dst, "db", u.Database)
	dst = bsoncore.AppendBinaryElement(dst, "uuid", 4, u.UUID[:])
	roles := make([]bson.Document, len(u.Roles))
	for i, r := range u.Roles {
		one, doc := bsoncore.AppendDocumentStart(nil)
		doc = bsoncore.AppendStringElement(doc, "role", r.Name)
		doc = bsoncore.AppendStringElement(doc, "db", r.Database)
		roles[i], _ = bsoncore.AppendDocumentEnd(doc, one)
	}
	dst = appendDocuments(dst, "roles", roles)
	creds, dst := bsoncore.AppendDocumentElementStart(dst, "credentials")
	for _, m := range u.Mechanisms() {
		dst = bsoncore.AppendStringElement(dst, string(m), u.Credentials[m].String())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, creds)
	if u.CustomData != nil {
		dst = bsoncore.AppendDocumentElement(dst, "customData", u.CustomData)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func parseUser(doc bson.Document) (auth.User, error) {
	f := fields{doc: doc}
	u := auth.User{UserName: auth.UserName{Name: f.text("user"), Database: f.text("db")}, Credentials: make(map[auth.Mechanism]auth.Credential)}
	uuid, _ := bson.Get(doc, "uuid")
	if _, data, ok := uuid.BinaryOK(); ok {
		copy(u.UUID[:], data)
	}
	roles, _ := bson.Get(doc, "roles")
	list, _ := roles.ArrayOK()
	it := bson.Elements(list)
	for list != nil && it.Next() {
		r := fields{doc: it.Value().Data}
		u.Roles = append(u.Roles, auth.Role{Name: r.text("role"), Database: r.text("db")})
		f.missing += r.missing
	}
	credentials, _ := bson.Get(doc, "credentials")
	for _, m := range auth.Mechanisms() {
		v, ok := bson.Get(credentials.Data, string(m))
		if !ok {
			continue
		}
		text, _ := v.StringValueOK()
		c, err := auth.ParseCredential(m, text)
		if err != nil {
			return u, fmt.Errorf("the catalog's record of user %s: %s: %w", u.UserName, m, err)
		}
		u.Credentials[m] = c
	}
	if data, ok := bson.Get(doc, "customData"); ok {
		u.CustomData = slices.Clone(data.Data)
	}
	if f.missing != "" {
		return u, fmt.Errorf("the catalog's record of user %q lacks %s", u.Name, f.missing)
	}
	return u, nil
}
