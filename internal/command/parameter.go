package command

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

// parameter is one server parameter that can be read.
type parameter struct {
	name   string
	append func(dst []byte, key string) []byte
}

// parameters lists, by name, the ones that clients ask for and that mean something here.
func (t *Table) parameters() []parameter {
	number := func(n int32) func([]byte, string) []byte {
		return func(dst []byte, key string) []byte { return bsoncore.AppendInt32Element(dst, key, n) }
	}
	flag := func(b bool) func([]byte, string) []byte {
		return func(dst []byte, key string) []byte { return bsoncore.AppendBooleanElement(dst, key, b) }
	}
	return []parameter{
		{"authSchemaVersion", number(5)},
		{"authenticationMechanisms", func(dst []byte, key string) []byte { return appendArray(dst, key, nil) }},
		{"cursorTimeoutMillis", func(dst []byte, key string) []byte {
			return bsoncore.AppendInt64Element(dst, key, t.deps.Cursors.IdleTimeout().Milliseconds())
		}},
		{"enableTestCommands", flag(false)},
		{"featureCompatibilityVersion", t.appendCompatibility},
		{"localLogicalSessionTimeoutMinutes", number(int32(cursor.SessionTimeout / time.Minute))},
		{"maxSessions", number(cursor.MaxSessions)},
		{"requireApiVersion", flag(false)},
	}
}

func (t *Table) appendCompatibility(dst []byte, key string) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	dst = bsoncore.AppendStringElement(dst, "version", compatibilityVersion(t.version()))
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// getParameter gives the parameters that the body names, or all for "*". Names that are not there are passed over unless nothing is left.
func (t *Table) getParameter(_ context.Context, req *Request, reply *Reply) error {
	all, details := false, false
	switch req.Argument.Type {
	case bson.TypeString:
		all = req.Argument.StringValue() == "*"
	case bson.TypeDocument:
		all = truthy(req.Argument.Data, "allParameters")
		details = truthy(req.Argument.Data, "showDetails")
	}
	dst, found := reply.Elements, false
	for _, p := range t.parameters() {
		if _, named := bson.Get(req.Body, p.name); !all && !named {
			continue
		}
		found = true
		if !details {
			dst = p.append(dst, p.name)
			continue
		}
		var at int32
		at, dst = bsoncore.AppendDocumentElementStart(dst, p.name)
		dst = p.append(dst, "value")
		dst = bsoncore.AppendBooleanElement(dst, "settableAtRuntime", false)
		dst = bsoncore.AppendBooleanElement(dst, "settableAtStartup", false)
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	}
	if !found {
		return mongoerr.New(mongoerr.InvalidOptions, "no option found to get")
	}
	reply.Elements = dst
	return nil
}
