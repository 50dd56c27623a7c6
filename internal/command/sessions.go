package command

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

// maxSessionsNamed bounds the sessions in one command, as drivers do (they send at most 10,000 at a time).
const maxSessionsNamed = 10_000

func (t *Table) startSession(_ context.Context, req *Request, reply *Reply) error {
	id, err := t.deps.Sessions.Start(req.Conn.User, t.deps.Now())
	if err != nil {
		return err
	}
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "id")
	dst = bsoncore.AppendBinaryElement(dst, "id", 4, id.UUID[:])
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	reply.Elements = bsoncore.AppendInt32Element(dst, "timeoutMinutes", int32(cursor.SessionTimeout/time.Minute))
	return nil
}

func (t *Table) refreshSessions(_ context.Context, req *Request, _ *Reply) error {
	ids, err := sessionsOf(req)
	if err != nil {
		return err
	}
	now := t.deps.Now()
	for _, id := range ids {
		if err := t.deps.Sessions.Touch(id, now); err != nil {
			return err
		}
	}
	return nil
}

// endSessions ends sessions and what they hold open, at once: MongoDB does it within its next refresh. Drivers send it when they close, also on
// connections where nobody has logged in.
func (t *Table) endSessions(_ context.Context, req *Request, _ *Reply) error {
	ids, err := sessionsOf(req)
	if err != nil || t.isNobody(req.Conn) {
		return err
	}
	t.deps.Cursors.KillSessions(ids...)
	t.deps.Sessions.End(ids...)
	t.forget()
	return nil
}

// killSessions kills the named sessions of the client's user, or all of them where none is named.
func (t *Table) killSessions(_ context.Context, req *Request, _ *Reply) error {
	ids, err := sessionsOf(req)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		t.killSessionsWhere(req, func(id cursor.SessionID) bool { return id.User == req.Conn.User || !t.deps.Authorize })
		return nil
	}
	named := make(map[cursor.SessionID]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	t.killSessionsWhere(req, func(id cursor.SessionID) bool { return named[id] })
	return nil
}

// killAllSessions kills the sessions of the users named, or of all where none is.
func (t *Table) killAllSessions(_ context.Context, req *Request, _ *Reply) error {
	a, err := arrayArgument(req)
	if err != nil {
		return err
	}
	owners, err := sessionOwners(a, "killAllSessions")
	if err != nil {
		return err
	}
	t.killSessionsWhere(req, func(id cursor.SessionID) bool { return len(owners) == 0 || owners[id.User] })
	return nil
}

// sessionOwners reads an array of {user, db} into the users as sessions name them. field is for the error.
func sessionOwners(a bson.Array, field string) (map[string]bool, error) {
	owners := make(map[string]bool)
	it := bson.Elements(a)
	for it.Next() {
		doc, ok := it.Value().DocumentOK()
		if !ok {
			return nil, wrongType(field, it.Value().Type, "object")
		}
		for _, k := range []string{"user", "db"} {
			if _, ok := bson.Get(doc, k); !ok {
				return nil, missing(field + "." + k)
			}
		}
		name, database, err := nameAndDatabase(it.Value(), "user", "")
		if err != nil {
			return nil, err
		}
		owners[userDigest(auth.UserName{Name: name, Database: database})] = true
	}
	return owners, nil
}

// killAllSessionsByPattern kills the sessions that match one of the patterns {lsid}, {uid}, {users} or {} (all).
func (t *Table) killAllSessionsByPattern(_ context.Context, req *Request, _ *Reply) error {
	a, err := arrayArgument(req)
	if err != nil {
		return err
	}
	var patterns []func(cursor.SessionID) bool
	it := bson.Elements(a)
	for it.Next() {
		doc, ok := it.Value().DocumentOK()
		if !ok {
			return wrongType("killAllSessionsByPattern", it.Value().Type, "object")
		}
		p, err := sessionPattern(doc)
		if err != nil {
			return err
		}
		patterns = append(patterns, p)
	}
	t.killSessionsWhere(req, func(id cursor.SessionID) bool {
		for _, match := range patterns {
			if match(id) {
				return true
			}
		}
		return len(patterns) == 0
	})
	return nil
}

func sessionPattern(doc bson.Document) (func(cursor.SessionID) bool, error) {
	key, v, ok := bson.First(doc)
	switch {
	case !ok:
		return func(cursor.SessionID) bool { return true }, nil
	case key == "lsid":
		want, err := parseSession(v, "lsid")
		if err != nil {
			return nil, err
		}
		return func(id cursor.SessionID) bool { return id == want }, nil
	case key == "uid":
		_, uid, ok := v.BinaryOK()
		if !ok {
			return nil, wrongType("KillAllSessionsByPattern.uid", v.Type, "binData")
		}
		want := string(uid)
		return func(id cursor.SessionID) bool { return id.User == want }, nil
	case key == "users":
		a, ok := v.ArrayOK()
		if !ok {
			return nil, wrongType("KillAllSessionsByPattern.users", v.Type, "array")
		}
		owners, err := sessionOwners(a, "KillAllSessionsByPattern.users")
		return func(id cursor.SessionID) bool { return owners[id.User] }, err
	case key == "roles":
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "'KillAllSessionsByPattern.roles' is not supported yet")
	}
	return nil, mongoerr.New(mongoerr.IDLUnknownField, "BSON field 'KillAllSessionsByPattern.%s' is an unknown field.", key)
}

// killSessionsWhere kills the cursors and the running commands of the sessions that match, the present command excepted, and
// forgets the sessions.
func (t *Table) killSessionsWhere(req *Request, match func(cursor.SessionID) bool) {
	t.deps.Cursors.KillWhere(func(i cursor.Info) bool { return i.Session != nil && match(*i.Session) }, nil)
	t.operations.killSessions(match, req.Conn)
	for _, s := range t.deps.Sessions.List(match) {
		t.deps.Sessions.End(s.ID)
	}
	t.forget()
}

// sessionsOf reads the command's argument: an array of {id: UUID}.
func sessionsOf(req *Request) ([]cursor.SessionID, error) {
	a, err := arrayArgument(req)
	if err != nil {
		return nil, err
	}
	var ids []cursor.SessionID
	it := bson.Elements(a)
	for it.Next() {
		id, err := parseSession(it.Value(), req.Name)
		if err != nil {
			return nil, err
		}
		if id, err = ownSession(id, req.Conn); err != nil {
			return nil, err
		}
		if ids = append(ids, id); len(ids) > maxSessionsNamed {
			return nil, mongoerr.New(mongoerr.BadValue, "%s takes at most %d sessions", req.Name, maxSessionsNamed)
		}
	}
	return ids, nil
}

func arrayArgument(req *Request) (bson.Array, error) {
	a, ok := req.Argument.ArrayOK()
	if !ok {
		return nil, wrongType(req.Name+"."+req.Name, req.Argument.Type, "array")
	}
	return a, nil
}
