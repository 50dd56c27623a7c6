package command

import (
	"net"

	"oxbow/internal/auth"
	"oxbow/internal/mongoerr"
)

// authorize refuses a command that the connection's user may not run. It says nothing about what the command names.
func (t *Table) authorize(req *Request) error {
	if !t.deps.Authorize {
		return nil
	}
	n, known := t.needs[req.Name]
	if !known {
		n.actions = auth.AnyCommand
	}
	if n.anyone {
		return nil
	}
	user := t.userOf(req.Conn)
	if user == nil {
		if t.firstUser(req) {
			return nil
		}
		return mongoerr.New(mongoerr.Unauthorized, "Command %s requires authentication", req.Name)
	}
	p := user.Privileges()
	allowed := p.Allows(req.Database, n.actions)
	if n.more != nil {
		n.more(req, func(database string, a auth.Actions) { allowed = allowed && p.Allows(database, a) })
	}
	if !allowed {
		return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s", req.Database, req.Name)
	}
	return nil
}

// isNobody reports whether a connection's client should be a user and is none: it has no sessions, and what it says of some counts for nothing.
func (t *Table) isNobody(c *Conn) bool { return t.deps.Authorize && t.userOf(c) == nil }

// firstUser is the way in while there are no users at all: a client on this machine may make one, as MongoDB's localhost exception has it.
func (t *Table) firstUser(req *Request) bool {
	return req.Name == "createUser" && req.Database == "admin" && t.deps.Users.Users().Len() == 0 && isLocal(req.Conn.Remote)
}

// isLocal reports whether a client's address is on this machine; a Unix socket's is empty.
func isLocal(remote string) bool {
	if remote == "" {
		return true
	}
	host, _, err := net.SplitHostPort(remote)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// may reports whether a connection's user may do something; everybody may everything while nothing is checked.
func (t *Table) may(c *Conn, database string, a auth.Actions) bool {
	if !t.deps.Authorize {
		return true
	}
	u := t.userOf(c)
	return u != nil && u.Privileges().Allows(database, a)
}

// sameUser reports whether two connections' clients have logged in as the same user, or neither has.
func sameUser(a, b *Conn) bool {
	x, y := a.who.Load(), b.who.Load()
	return x == y || x != nil && y != nil && *x == *y
}
