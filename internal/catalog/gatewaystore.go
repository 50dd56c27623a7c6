package catalog

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// renew renews a gateway's entry, raises the version by the number of changes to announce, and returns the document; nil if the entry is not there or ended.
func (s store) renew(ctx context.Context, e entry, announced int64) (bson.Document, error) {
	at := "gateways." + e.id + "."
	return s.modify(ctx, false, []byte(bsoncore.AppendBooleanElement(nil, at+"ended", false)), func(dst []byte) []byte {
		set, dst := bsoncore.AppendDocumentElementStart(dst, "$set")
		dst = bsoncore.AppendInt64Element(dst, at+"beat", e.beat)
		dst = bsoncore.AppendInt64Element(dst, at+"seen", e.seen)
		dst = bsoncore.AppendInt64Element(dst, at+"drained", e.drained)
		dst = bsoncore.AppendDateTimeElement(dst, at+"renewed", time.Now().UnixMilli())
		dst = ended(dst, set)
		return appendRaise(dst, announced)
	})
}

// join adds a gateway's entry, makes the document if need be, and returns it.
func (s store) join(ctx context.Context, e entry, started time.Time) (bson.Document, error) {
	update := func(dst []byte) []byte {
		set, dst := bsoncore.AppendDocumentElementStart(dst, "$set")
		one, dst := bsoncore.AppendDocumentElementStart(dst, "gateways."+e.id)
		dst = bsoncore.AppendStringElement(dst, "host", e.host)
		dst = bsoncore.AppendDateTimeElement(dst, "started", started.UnixMilli())
		dst = bsoncore.AppendDateTimeElement(dst, "renewed", time.Now().UnixMilli())
		dst = bsoncore.AppendInt64Element(dst, "lease", e.lease.Milliseconds())
		dst = bsoncore.AppendInt64Element(dst, "longest", e.longest.Milliseconds())
		dst = bsoncore.AppendInt64Element(dst, "beat", e.beat)
		dst = bsoncore.AppendInt64Element(dst, "seen", 0)
		dst = bsoncore.AppendInt64Element(dst, "drained", 0)
		dst = bsoncore.AppendBooleanElement(dst, "ended", false)
		dst = ended(ended(dst, one), set)
		return appendRaise(dst, 1)
	}
	doc, err := s.modify(ctx, true, nil, update)
	if mongoerr.Is(err, mongoerr.DuplicateKey) { // another gateway has made the document meanwhile
		doc, err = s.modify(ctx, true, nil, update)
	}
	return doc, err
}

// end ends the lease of another gateway, if its entry is still as it was watched. The version is raised, since the gateway may have changed something and not
// announced it.
func (s store) end(ctx context.Context, e entry) (bool, error) {
	at := "gateways." + e.id + "."
	doc, err := s.modify(ctx, false, bsoncore.AppendInt64Element(nil, at+"beat", e.beat), func(dst []byte) []byte {
		set, dst := bsoncore.AppendDocumentElementStart(dst, "$set")
		dst = bsoncore.AppendBooleanElement(dst, at+"ended", true)
		return appendRaise(ended(dst, set), 1)
	})
	return doc != nil, err
}

// remove removes the entry of a gateway whose lease was ended.
func (s store) remove(ctx context.Context, e entry) error {
	at := "gateways." + e.id + "."
	filter := bsoncore.AppendInt64Element(nil, at+"beat", e.beat)
	_, err := s.modify(ctx, false, bsoncore.AppendBooleanElement(filter, at+"ended", true), unset(e.id))
	return err
}

// leave removes the entry of a gateway that stops.
func (s store) leave(ctx context.Context, id string) error {
	_, err := s.modify(ctx, false, nil, unset(id))
	return err
}

// unset takes an entry away. The version is raised here, too.
func unset(id string) func([]byte) []byte {
	return func(dst []byte) []byte {
		at, dst := bsoncore.AppendDocumentElementStart(dst, "$unset")
		dst = bsoncore.AppendStringElement(dst, "gateways."+id, "")
		return appendRaise(ended(dst, at), 1)
	}
}

func appendRaise(dst []byte, by int64) []byte {
	if by == 0 {
		return dst
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "$inc")
	dst = bsoncore.AppendInt64Element(dst, "version", by)
	return ended(dst, at)
}

// modify changes the document if it matches a filter's elements as well, and returns it as it is then; nil if it does not match.
func (s store) modify(ctx context.Context, upsert bool, filter []byte, update func([]byte) []byte) (bson.Document, error) {
	reply, err := s.on.command(ctx, s.database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "findAndModify", gatewaysStored)
		at, dst := bsoncore.AppendDocumentElementStart(dst, "query")
		dst = bsoncore.AppendStringElement(dst, "_id", "catalog")
		dst = ended(append(dst, filter...), at)
		at, dst = bsoncore.AppendDocumentElementStart(dst, "update")
		dst = ended(update(dst), at)
		dst = bsoncore.AppendBooleanElement(dst, "new", true)
		dst = bsoncore.AppendBooleanElement(dst, "upsert", upsert)
		return durable(dst)
	})
	if err != nil {
		return nil, fmt.Errorf("tell of this gateway: %w", err)
	}
	value, _ := bson.Get(reply, "value")
	if value.Type != bson.TypeDocument {
		return nil, nil
	}
	return value.Data, nil
}
