package deployment

import (
	"context"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// hello is what a server tells of itself without a login (https://www.mongodb.com/docs/manual/reference/command/hello/).
type hello struct {
	router   bool
	set      string
	hosts    []string // members that vote or can become primary, and those that can't; hidden ones are not told of
	arbiters []string
	me       string
	primary  string
	version  int64 // of the set's configuration

	state   State
	hidden  bool
	delay   time.Duration
	tags    map[string]string
	applied time.Time
}

// anyMember lets a member that is no primary answer.
func anyMember(dst []byte) []byte {
	return bsoncore.BuildDocumentElement(dst, "$readPreference", bsoncore.AppendStringElement(nil, "mode", "primaryPreferred"))
}

// command is a command of the database admin whose argument is 1, for any member.
func command(name string) bson.Document {
	return backend.Command("admin", func(dst []byte) []byte { return anyMember(bsoncore.AppendInt32Element(dst, name, 1)) })
}

var helloCommand, isMasterCommand = command("hello"), command("isMaster")

// greet asks a server for hello; by its old name where it knows no other, before MongoDB 4.4.2.
func greet(ctx context.Context, b backend.Backend) (hello, error) {
	reply, err := backend.Ask(ctx, b, helloCommand)
	if isUnknown(err) {
		reply, err = backend.Ask(ctx, b, isMasterCommand)
	}
	if err != nil {
		return hello{}, err
	}
	return readHello(reply), nil
}

func readHello(reply bson.Document) hello {
	h := hello{state: Other}
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "msg":
			h.router = text(v) == "isdbgrid"
		case "setName":
			h.set = text(v)
		case "setVersion":
			h.version, _ = v.AsInt64OK()
		case "hosts", "passives":
			h.hosts = append(h.hosts, texts(v)...)
		case "arbiters":
			h.arbiters = texts(v)
		case "me":
			h.me = text(v)
		case "primary":
			h.primary = text(v)
		case "isWritablePrimary", "ismaster":
			if isTrue(v) {
				h.state = Primary
			}
		case "secondary":
			if isTrue(v) {
				h.state = Secondary
			}
		case "arbiterOnly":
			if isTrue(v) {
				h.state = Arbiter
			}
		case "hidden":
			h.hidden = isTrue(v)
		case "secondaryDelaySecs", "slaveDelay":
			h.delay = seconds(v)
		case "tags":
			h.tags = textsByName(v)
		case "lastWrite":
			last, _ := bson.Get(v.Data, "lastWriteDate")
			h.applied, _ = last.TimeOK()
		}
	}
	return h
}

// describe notes what a member says of itself.
func (m *Member) describe(h hello) {
	m.Hidden, m.Delay, m.Tags = h.hidden, h.delay, h.tags
	m.takeState(h)
}
