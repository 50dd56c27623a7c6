package oxbow

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/command"
	"oxbow/internal/maintain/partition"
)

// appendStatus appends serverStatus' section oxbow: under storage, the figures of each embedded backend's store by the backend's name; under gateways, those
// that share the catalog.
func (g *Gateway) appendStatus(dst []byte) []byte {
	dst = g.appendGateways(dst)
	at, dst := bsoncore.AppendDocumentElementStart(dst, "storage")
	for _, name := range slices.Sorted(maps.Keys(g.backends)) {
		if b := g.backends[name]; b.Abilities().Embedded {
			if v, ok := storageOf(b); ok {
				dst = bsoncore.AppendValueElement(dst, name, v)
			}
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendGateways appends this gateway's part in a shared catalog, and the others as it sees them.
func (g *Gateway) appendGateways(dst []byte) []byte {
	s, shared := g.catalog.Sharing()
	if !shared {
		return dst
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "gateways")
	dst = bsoncore.AppendStringElement(dst, "me", s.Gateway)
	dst = bsoncore.AppendBooleanElement(dst, "lease", s.Lease)
	dst = bsoncore.AppendInt64Element(dst, "version", s.Latest)
	dst = bsoncore.AppendInt64Element(dst, "seen", s.Seen)
	dst = bsoncore.AppendInt64Element(dst, "ageMillis", s.Age.Milliseconds())
	others, dst := bsoncore.AppendDocumentElementStart(dst, "others")
	for _, o := range s.Others {
		one, doc := bsoncore.AppendDocumentElementStart(dst, o.Gateway)
		doc = bsoncore.AppendStringElement(doc, "host", o.Host)
		doc = bsoncore.AppendInt64Element(doc, "seen", o.Seen)
		doc = bsoncore.AppendInt64Element(doc, "drained", o.Drained)
		doc = bsoncore.AppendInt64Element(doc, "silentMillis", o.Silent.Milliseconds())
		doc = bsoncore.AppendBooleanElement(doc, "ended", o.Ended)
		dst, _ = bsoncore.AppendDocumentEnd(doc, one)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, others)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// storageOf asks an embedded backend for its store's figures; one that is closing has none.
func storageOf(b backend.Backend) (bson.Value, bool) {
	body := bsoncore.NewDocumentBuilder().AppendInt32("serverStatus", 1).AppendString("$db", "admin").Build()
	reply, err := b.Run(context.Background(), &backend.Request{Body: bson.Document(body)})
	if err != nil {
		return bson.Value{}, false
	}
	own, _ := bson.Get(reply, "oxbow")
	section, ok := own.DocumentOK()
	if !ok {
		return bson.Value{}, false
	}
	return bson.Get(section, "storage")
}

// upkeep shows retention's runner to the commands, which must not know it.
type upkeep struct{ *partition.Runner }

// History returns the runner's events on one collection.
func (u upkeep) History(ns string) []command.UpkeepEvent {
	var events []command.UpkeepEvent
	for _, e := range u.Runner.History() {
		if e.Collection == ns {
			events = append(events, command.UpkeepEvent{
				At: e.At, Partition: e.Partition, Action: string(e.Action), Reason: e.Reason, Took: e.Took, Err: e.Err,
			})
		}
	}
	return events
}
