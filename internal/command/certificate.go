package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// certificateMechanism is the one mechanism of authenticate: the client has shown its certificate when the connection was made
// (https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#mongodb-x509).
const certificateMechanism = "MONGODB-X509"

// authenticate logs in who has shown a certificate, as the user of $external that its subject names.
func (t *Table) authenticate(_ context.Context, req *Request, reply *Reply) error {
	n, err := t.showCertificate(req.Conn, req.Body, req.Database)
	if err != nil {
		return err
	}
	reply.Elements = appendShown(reply.Elements, n)
	return nil
}

// appendShown appends what authenticate answers.
func appendShown(dst []byte, n auth.UserName) []byte {
	dst = bsoncore.AppendStringElement(dst, "dbname", n.Database)
	return bsoncore.AppendStringElement(dst, "user", n.Name)
}

// appendCertificateLogin is authenticate as it comes with a hello: one that fails is passed over, and the client tries again by itself.
func (t *Table) appendCertificateLogin(c *Conn, body bson.Document, dst []byte) []byte {
	n, err := t.showCertificate(c, body, auth.External)
	if err != nil {
		return dst
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "speculativeAuthenticate")
	dst = appendShown(dst, n)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// showCertificate logs in the user of a connection's certificate. A user that the command names must be that one.
func (t *Table) showCertificate(c *Conn, body bson.Document, database string) (auth.UserName, error) {
	m, _ := bson.Get(body, "mechanism")
	if mechanism, _ := m.StringValueOK(); mechanism != certificateMechanism {
		return auth.UserName{}, mongoerr.New(mongoerr.MechanismUnavailable, "Received authentication for mechanism %q which is unknown or not enabled", mechanism)
	}
	n := auth.UserName{Name: c.Subject, Database: auth.External}
	named, hasName := bson.Get(body, "user")
	asked, _ := named.StringValueOK()
	var err error
	switch {
	case database != auth.External:
		err = mongoerr.New(mongoerr.ProtocolError, "X.509 authentication must always use the $external database.")
	case c.Subject == "":
		err = mongoerr.New(mongoerr.AuthenticationFailed, "No verified subject name available from client")
	case hasName && asked != c.Subject:
		err = mongoerr.New(mongoerr.AuthenticationFailed, "There is no x.509 client certificate matching the user.")
	}
	u := t.deps.Users.Users().User(n)
	if err == nil && u == nil {
		err = mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.")
	}
	if err != nil {
		t.deps.Log.Warn("authentication failed", "user", n.String(), "remote", c.Remote)
		return n, err
	}
	return n, t.logIn(c, u)
}
