package auth

import (
	"github.com/xdg-go/scram"

	"oxbow/internal/mongoerr"
)

// Conversation is one attempt of a client to prove that it is a user: saslStart, and one or two saslContinue.
type Conversation struct {
	users     *Set
	mechanism Mechanism
	database  string
	skipEmpty bool // the client wants no empty exchange at the end (option skipEmptyExchange)
	steps     *scram.ServerConversation
	proven    bool
	user      *User
}

// maxPayload bounds what a client may send in a step: RFC 5802's messages are far smaller.
const maxPayload = 4096

// NewConversation begins a conversation with a client that wants to be a user of a database. An unknown mechanism is MechanismUnavailable.
func NewConversation(users *Set, database string, m Mechanism, skipEmptyExchange bool) (*Conversation, error) {
	if m != SHA1 && m != SHA256 {
		return nil, mongoerr.New(mongoerr.MechanismUnavailable,
			"Received authentication for mechanism %q which is unknown or not enabled", string(m))
	}
	c := &Conversation{users: users, mechanism: m, database: database, skipEmpty: skipEmptyExchange}
	server, err := m.hash().NewServer(func(name string) (scram.StoredCredentials, error) {
		c, ok := users.credential(UserName{name, database}, m)
		if !ok {
			return scram.StoredCredentials{}, failed()
		}
		return c.stored(), nil
	})
	if err != nil {
		return nil, err
	}
	c.steps = server.NewConversation()
	return c, nil
}

// Step takes the client's next message and returns the answer, and whether that was the last one. Every failure is AuthenticationFailed and ends the
// conversation: what was wrong is nothing that a client should learn.
func (c *Conversation) Step(payload []byte) (answer []byte, done bool, err error) {
	if c.proven {
		if len(payload) != 0 {
			return nil, true, failed()
		}
		return nil, true, c.finish()
	}
	if len(payload) > maxPayload {
		return nil, true, failed()
	}
	text, err := c.steps.Step(string(payload))
	if err != nil || c.otherUser() {
		return nil, true, failed()
	}
	if !c.steps.Valid() {
		return []byte(text), false, nil
	}
	c.proven = true
	if !c.skipEmpty {
		return []byte(text), false, nil
	}
	return []byte(text), true, c.finish()
}

// otherUser reports whether the client wants to act as another user than the one that it proves to be.
func (c *Conversation) otherUser() bool {
	return c.steps.AuthzID() != "" && c.steps.AuthzID() != c.steps.Username()
}

// finish notes who the client is.
func (c *Conversation) finish() error {
	if c.user = c.users.User(c.Name()); c.user == nil {
		return failed()
	}
	return nil
}

// Name is the user that the client wants to be, good after the first step.
func (c *Conversation) Name() UserName { return UserName{c.steps.Username(), c.database} }

// User is who the client has proven to be: nil before the last step.
func (c *Conversation) User() *User { return c.user }

func failed() error { return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.") }
