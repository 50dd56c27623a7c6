package remote

import (
	"errors"
	"fmt"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// refuseOptions refuses what a connection string can say about commands and what the gateway has its own place for, so that it is not passed over.
func refuseOptions(o *options.ClientOptions) error {
	switch {
	case o.ReadPreference != nil && o.ReadPreference.Mode() != readpref.PrimaryMode:
		return errors.New("readPreference is not taken from a backend's URI: use the configuration's key read")
	case o.ReadConcern != nil:
		return errors.New("readConcernLevel is not taken from a backend's URI: clients choose it")
	case o.Timeout != nil:
		return errors.New("timeoutMS is not taken from a backend's URI: clients choose how long their commands take")
	case o.LoadBalanced != nil && *o.LoadBalanced:
		return errors.New("loadBalanced is not supported: name the routers themselves")
	case o.WriteConcern != nil && !o.WriteConcern.Acknowledged():
		return errors.New("w=0 is not taken from a backend's URI: the gateway needs to know what became of a write")
	}
	return nil
}

// concernOf returns the write concern of a connection string as a command's element, nil for none.
func concernOf(c *writeconcern.WriteConcern) ([]byte, error) {
	if c == nil {
		return nil, nil
	}
	at, dst := bsoncore.AppendDocumentElementStart(nil, "writeConcern")
	switch w := c.W.(type) {
	case nil:
	case int:
		dst = bsoncore.AppendInt32Element(dst, "w", int32(w))
	case string:
		dst = bsoncore.AppendStringElement(dst, "w", w)
	default:
		return nil, fmt.Errorf("w is neither a number nor a name: %v", w)
	}
	if c.Journal != nil {
		dst = bsoncore.AppendBooleanElement(dst, "j", *c.Journal)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst, nil
}

// takesConcern are the commands to which drivers add the write concern of their connection string.
var takesConcern = map[string]bool{
	"insert": true, "update": true, "delete": true, "findAndModify": true, "findandmodify": true,
	"create": true, "createIndexes": true, "drop": true, "dropDatabase": true, "dropIndexes": true,
}

// withConcern returns a command with the URI's write concern, unless it takes none, has one of its own, or is in a transaction, whose end has it.
func (b *Backend) withConcern(name string, body bson.Document) bson.Document {
	if b.concern == nil || !takesConcern[name] {
		return body
	}
	if _, has := bson.Get(body, "writeConcern"); has {
		return body
	}
	if _, has := bson.Get(body, "autocommit"); has {
		return body
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(body)+len(b.concern)))
	dst = append(dst, body[4:len(body)-1]...)
	dst = append(dst, b.concern...)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
