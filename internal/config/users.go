package config

import (
	"strings"

	"oxbow/internal/auth"
)

// readUsers reads the keys auth and users:
//
//	auth: on                 # off where no users are named
//	users:
//	  ada@admin:
//	    scram-sha-256: "15000$salt$storedKey$serverKey"
//	    roles: [root, readWrite@shop]
//	  "CN=loader,O=Shop@$external":   # who shows a certificate with this subject
//	    roles: [readWrite@shop]
func (cfg *Config) readUsers(m *mapping) {
	if n := m.take("users"); n != nil {
		list := openMapping(m.report, n, "users")
		for _, e := range list.entries {
			if u, ok := readUser(m.report, e, list.child(e.key)); ok {
				cfg.Users = append(cfg.Users, u)
			}
		}
	}
	otherwise := 1
	if len(cfg.Users) > 0 {
		otherwise = 0
	}
	cfg.Authorize = m.choice("auth", otherwise, "on", "off") == 0
}

func readUser(r *report, e entry, path string) (auth.User, bool) {
	before := len(r.list)
	u := auth.User{Credentials: make(map[auth.Mechanism]auth.Credential)}
	at := strings.LastIndexByte(e.key, '@') // the subject of a certificate may have others
	if at <= 0 || at == len(e.key)-1 {
		r.add(e.at, path, "must be name@database")
		return u, false
	}
	u.UserName = auth.UserName{Name: e.key[:at], Database: e.key[at+1:]}
	m := openMapping(r, e.value, path)
	for _, mechanism := range auth.Mechanisms() {
		key := strings.ToLower(string(mechanism))
		text, n := m.text(key)
		if n == nil {
			continue
		}
		c, err := auth.ParseCredential(mechanism, text)
		if err != nil {
			m.add(n, m.child(key), "%v", err)
			continue
		}
		u.Credentials[mechanism] = c
	}
	password := m.has("scram-sha-256") || m.has("scram-sha-1")
	switch {
	case u.Database == auth.External && password:
		r.add(e.at, path, "can't have a password: a user of %s shows a certificate with that subject", auth.External)
	case u.Database != auth.External && !password:
		r.add(e.at, path, "needs scram-sha-256 or scram-sha-1: oxbow password writes them")
	}
	names, nodes := m.texts("roles")
	for i, text := range names {
		role := auth.Role{Name: text, Database: u.Database}
		if name, database, ok := strings.Cut(text, "@"); ok {
			role = auth.Role{Name: name, Database: database}
		}
		if auth.CheckRole(role) != nil {
			m.add(nodes[i], m.child("roles"), "%q is not a role of database %q; there are %s, and those over all databases are of admin",
				role.Name, role.Database, strings.Join(auth.RoleNames(), ", "))
			continue
		}
		u.Roles = append(u.Roles, role)
	}
	if !m.has("roles") {
		r.add(e.at, path, "needs roles, as [readWrite]")
	}
	m.close("scram-sha-256", "scram-sha-1", "roles")
	return u, len(r.list) == before
}
