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
//	{_id: "database.name", user, db: string, uuid: UUID, roles: [{role, db: string}], credentials: {mechanism: string, …}, customData: {…},
//	 change: int64}
//
// A credential is written as in the configuration. Older ones lack change.
const usersStored = "users"

// users are the users of the configuration and those that commands made. One of the configuration hides one of its name that is stored.
type users struct {
	changes semaphore    // one change at a time, held over the write
	stored  []storedUser // under Catalog.mu
	now     atomic.Pointer[auth.Set]
}

// storedUser is a user as it is stored, and how many versions of it were.
type storedUser struct {
	auth.User
	change int64
}

// Users returns the users as they are now.
func (c *Catalog) Users() *auth.Set { return c.users.now.Load() }

// loadUsers reads the stored users and publishes them with those of the configuration.
func (c *Catalog) loadUsers(ctx context.Context, configured []auth.User) (err error) {
	if c.users.stored, err = c.storedUsers(ctx); err != nil {
		return err
	}
	c.publishUsers(configured)
	return nil
}

func (c *Catalog) storedUsers(ctx context.Context) ([]storedUser, error) {
	docs, err := c.store.all(ctx, usersStored)
	if err != nil {
		return nil, err
	}
	var list []storedUser
	for _, doc := range docs {
		u, err := parseUser(doc)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// publishUsers publishes the stored users with those of a configuration. The caller holds mu, once others can see the catalog.
func (c *Catalog) publishUsers(configured []auth.User) {
	all := make([]auth.User, 0, len(c.users.stored)+len(configured))
	for _, u := range c.users.stored {
		all = append(all, u.User)
	}
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
		return c.keepUser(ctx, storedUser{u, unstored})
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
		u := storedUser{*now, c.storedChange(n)}
		if err := change(&u.User); err != nil {
			return err
		}
		return c.keepUser(ctx, u)
	})
}

func errConfigured(n auth.UserName) error {
	return mongoerr.New(mongoerr.IllegalOperation, "user '%s' stands in the configuration and changes there", n)
}

// storedChange is how many versions of a stored user there were.
func (c *Catalog) storedChange(n auth.UserName) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.users.stored {
		if u.UserName == n {
			return u.change
		}
	}
	return unstored
}

// keepUser stores a user in place of the version that it was made from.
func (c *Catalog) keepUser(ctx context.Context, u storedUser) error {
	was := u.change
	u.change = max(0, was) + 1
	if err := c.store.swap(ctx, usersStored, []version{{was, userDocument(u)}}); err != nil {
		return err
	}
	c.replaceUsers(func(n auth.UserName) bool { return n == u.UserName }, u)
	return nil
}

// replaceUsers publishes other users in place of those that match.
func (c *Catalog) replaceUsers(match func(auth.UserName) bool, by ...storedUser) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.published++
	left := slices.DeleteFunc(slices.Clone(c.users.stored), func(o storedUser) bool { return match(o.UserName) })
	c.users.stored = append(left, by...)
	c.publishUsers(c.Snapshot().config.Users)
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
		if _, err := c.store.delete(ctx, usersStored, ids, nil); err != nil {
			return err
		}
		n = len(ids)
		c.replaceUsers(match)
		return nil
	})
	return n, err
}

// changeUsers runs a change of the stored users alone, and waits until every gateway knows of it; one that can't be told of it by now learns it with the
// lease that it needs.
func (c *Catalog) changeUsers(ctx context.Context, change func() error) error {
	if err := c.users.changes.acquire(ctx); err != nil {
		return err
	}
	defer c.users.changes.release()
	if err := c.deciding(ctx, change); err != nil {
		return err
	}
	told, err := c.members.announce(ctx)
	if err == nil {
		err = c.members.awaitSeen(ctx, told)
	}
	if err != nil {
		c.log.Warn("other gateways may not know of a change of users yet", "error", err)
	}
	return nil
}

func userID(n auth.UserName) string { return n.Database + "." + n.Name }

func userDocument(u storedUser) bson.Document {
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
	dst = bsoncore.AppendInt64Element(dst, "change", u.change)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func parseUser(doc bson.Document) (storedUser, error) {
	f := fields{doc: doc}
	var u storedUser
	u.User = auth.User{UserName: auth.UserName{Name: f.text("user"), Database: f.text("db")}, Credentials: make(map[auth.Mechanism]auth.Credential)}
	if f.has("change") {
		u.change = f.whole("change")
	}
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
