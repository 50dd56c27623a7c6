package command

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// login is who a connection's client is. It belongs to the connection's goroutine.
type login struct {
	name         auth.UserName
	uuid         [16]byte // of the user: one that is dropped and made again is another
	in           bool
	conversation *auth.Conversation // one that has begun and not ended
	id           int32              // its conversationId

	users *auth.Set  // the users when user was looked up
	user  *auth.User // nil: there is none of that name any more
}

// userOf returns the user that a connection's client has proven to be, as the users are now: what was taken from it is gone with its next command.
func (t *Table) userOf(c *Conn) *auth.User {
	l := &c.login
	if !l.in {
		return nil
	}
	if now := t.deps.Users.Users(); l.users != now {
		l.users, l.user = now, now.User(l.name)
		if l.user != nil && l.user.UUID != l.uuid {
			l.user = nil
		}
	}
	return l.user
}

// logIn makes the client a user, if there may be one more connection of that user: its sessions and cursors belong to it from now on.
func (t *Table) logIn(c *Conn, u *auth.User) error {
	if err := t.joinUser(c, u.UserName); err != nil {
		return err
	}
	c.login = login{name: u.UserName, uuid: u.UUID, in: true}
	c.User = userDigest(u.UserName)
	c.who.Store(&u.UserName)
	return nil
}

// userDigest is how a session names its user: lsid.uid, the SHA-256 of "name@database"
// (https://www.mongodb.com/docs/v7.0/reference/server-sessions/).
func userDigest(n auth.UserName) string {
	sum := sha256.Sum256([]byte(n.String()))
	return string(sum[:])
}

// logout forgets who the client is.
func (t *Table) logout(_ context.Context, req *Request, _ *Reply) error {
	t.leaveUser(req.Conn)
	req.Conn.login, req.Conn.User = login{}, ""
	req.Conn.who.Store(nil)
	return nil
}

// saslStart begins a conversation. One that was under way is forgotten, as in MongoDB.
func (t *Table) saslStart(_ context.Context, req *Request, reply *Reply) error {
	start, err := parseSASLStart(req.Body)
	if err != nil {
		return err
	}
	dst, err := t.beginLogin(req.Conn, start, req.Database, reply.Elements)
	if err != nil {
		return err
	}
	reply.Elements = dst
	return nil
}

// saslContinue takes the next message of the conversation.
func (t *Table) saslContinue(_ context.Context, req *Request, reply *Reply) error {
	id, ok := bson.Get(req.Body, "conversationId")
	if !ok {
		return missing("saslContinue.conversationId")
	}
	number, ok := wholeNumber(id)
	if !ok {
		return wrongType("saslContinue.conversationId", id.Type, "int")
	}
	payload, err := payloadOf(req.Body, "saslContinue")
	if err != nil {
		return err
	}
	l := &req.Conn.login
	if l.conversation == nil {
		return mongoerr.New(mongoerr.ProtocolError, "No SASL session state found")
	}
	if number != int64(l.id) {
		return mongoerr.New(mongoerr.ProtocolError, "sasl: Mismatched conversation id")
	}
	reply.Elements, err = t.stepLogin(req.Conn, payload, reply.Elements)
	return err
}

// saslStartArguments are what saslStart takes, as a command and as hello's speculativeAuthenticate.
type saslStartArguments struct {
	mechanism string
	payload   []byte
	skipEmpty bool
}

func parseSASLStart(doc bson.Document) (saslStartArguments, error) {
	var a saslStartArguments
	m, ok := bson.Get(doc, "mechanism")
	if !ok {
		return a, missing("saslStart.mechanism")
	}
	if a.mechanism, ok = m.StringValueOK(); !ok {
		return a, wrongType("saslStart.mechanism", m.Type, "string")
	}
	var err error
	if a.payload, err = payloadOf(doc, "saslStart"); err != nil {
		return a, err
	}
	options, _ := bson.Get(doc, "options")
	if options.Type == bson.TypeDocument {
		a.skipEmpty = truthy(options.Data, "skipEmptyExchange")
	}
	return a, nil
}

// payloadOf reads a message of SCRAM.
func payloadOf(doc bson.Document, command string) ([]byte, error) {
	v, ok := bson.Get(doc, "payload")
	if !ok {
		return nil, missing(command + ".payload")
	}
	if _, data, ok := v.BinaryOK(); ok {
		return data, nil
	}
	return nil, wrongType(command+".payload", v.Type, "binData")
}

// beginLogin begins a conversation and appends the answer to its first message.
func (t *Table) beginLogin(c *Conn, a saslStartArguments, database string, dst []byte) ([]byte, error) {
	conversation, err := auth.NewConversation(t.deps.Users.Users(), database, auth.Mechanism(a.mechanism), a.skipEmpty)
	if err != nil {
		return dst, err
	}
	c.login.conversation = conversation
	c.login.id++
	return t.stepLogin(c, a.payload, dst)
}

// stepLogin takes a client's message and appends conversationId, done and payload. A client that has proven who it is, is logged in.
func (t *Table) stepLogin(c *Conn, payload []byte, dst []byte) ([]byte, error) {
	conversation, id := c.login.conversation, c.login.id
	answer, done, err := conversation.Step(payload)
	if done {
		c.login.conversation = nil
	}
	if err != nil {
		t.deps.Log.Warn("authentication failed", "user", conversation.Name().String(), "remote", c.Remote)
		return dst, err
	}
	if done {
		if err := t.logIn(c, conversation.User()); err != nil {
			return dst, err
		}
		c.login.id = id
	}
	dst = bsoncore.AppendInt32Element(dst, "conversationId", id)
	dst = bsoncore.AppendBooleanElement(dst, "done", done)
	return bsoncore.AppendBinaryElement(dst, "payload", 0, answer), nil
}

// appendLogin appends what hello says of logging in: the mechanisms of the user that it names, and the answer to a saslStart that it carries
// (https://github.com/mongodb/specifications/blob/master/source/auth/auth.md). A saslStart that fails is passed over: the client then begins anew.
func (t *Table) appendLogin(c *Conn, h helloArguments, dst []byte) []byte {
	if database, name, ok := strings.Cut(h.mechanismsOf, "."); ok {
		var names []string
		for _, m := range t.deps.Users.Users().MechanismsOf(auth.UserName{Name: name, Database: database}) {
			names = append(names, string(m))
		}
		slices.Sort(names)
		dst = appendArray(dst, "saslSupportedMechs", names)
	}
	if h.speculative == nil {
		return dst
	}
	if name, _, _ := bson.First(h.speculative); name == "authenticate" {
		return t.appendCertificateLogin(c, h.speculative, dst)
	}
	a, err := parseSASLStart(h.speculative)
	if err != nil {
		return dst
	}
	db, _ := bson.Get(h.speculative, "db")
	database, _ := db.StringValueOK()
	before := len(dst)
	at, dst := bsoncore.AppendDocumentElementStart(dst, "speculativeAuthenticate")
	dst, err = t.beginLogin(c, a, database, dst)
	if err != nil {
		return dst[:before]
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
