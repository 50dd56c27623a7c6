package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"oxbow/internal/bson"
)

// UserName names a user: the same name in two databases is two users.
type UserName struct {
	Name     string
	Database string
}

// External is the database of users whose credentials are kept elsewhere: those who show a certificate, named by its subject.
const External = "$external"

// String returns "name@database", as MongoDB's messages do.
func (n UserName) String() string { return n.Name + "@" + n.Database }

// User is a user as it is kept.
type User struct {
	UserName
	UUID        [16]byte
	Credentials map[Mechanism]Credential
	Roles       []Role
	CustomData  bson.Document // nil: none
	Configured  bool          // comes from the configuration, so commands can't change it

	privileges *Privileges
}

// Privileges is what the user's roles allow.
func (u *User) Privileges() *Privileges { return u.privileges }

// Has reports whether the user holds a role.
func (u *User) Has(r Role) bool { return slices.Contains(u.Roles, r) }

// Mechanisms lists those that the user has a credential of, the stronger one first.
func (u *User) Mechanisms() []Mechanism {
	var out []Mechanism
	for _, m := range Mechanisms() {
		if _, ok := u.Credentials[m]; ok {
			out = append(out, m)
		}
	}
	return out
}

// Set is all users at one time. It never changes.
type Set struct {
	users  map[UserName]*User
	secret [32]byte // of the salts of users that don't exist
}

// NewSet returns a set of users. It keeps the secret of the set before, if there is one, so that a user that doesn't exist keeps its salt.
func NewSet(before *Set, users ...User) *Set {
	s := &Set{users: make(map[UserName]*User, len(users))}
	for _, u := range users {
		u.privileges = privilegesOf(u.Roles)
		s.users[u.UserName] = &u
	}
	if before != nil {
		s.secret = before.secret
	} else {
		rand.Read(s.secret[:])
	}
	return s
}

// User returns a user, or nil.
func (s *Set) User(n UserName) *User { return s.users[n] }

// Len is the number of users.
func (s *Set) Len() int { return len(s.users) }

// All returns the users in the order of database and name.
func (s *Set) All() []*User {
	return slices.SortedFunc(maps.Values(s.users), func(a, b *User) int {
		if c := strings.Compare(a.Database, b.Database); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// MechanismsOf lists the mechanisms that a client may choose from for a user (saslSupportedMechs of hello). A user that doesn't exist has both, so
// that asking tells nothing.
func (s *Set) MechanismsOf(n UserName) []Mechanism {
	if u := s.users[n]; u != nil {
		return u.Mechanisms()
	}
	return Mechanisms()
}

// credential returns a user's credential. That of a user that doesn't exist is one that no password fits, with a salt that stays the same for this
// name. A user without one of the mechanism has none: a client that tried without knowing must be able to try the other one.
func (s *Set) credential(n UserName, m Mechanism) (Credential, bool) {
	if u := s.users[n]; u != nil {
		c, ok := u.Credentials[m]
		return c, ok
	}
	iterations, length := m.strength()
	mac := hmac.New(sha256.New, s.secret[:])
	mac.Write([]byte(string(m) + "\x00" + n.Database + "\x00" + n.Name))
	c := Credential{Iterations: iterations, Salt: mac.Sum(nil)[:length], StoredKey: make([]byte, m.keyLength()), ServerKey: make([]byte, m.keyLength())}
	rand.Read(c.StoredKey)
	rand.Read(c.ServerKey)
	return c, true
}
