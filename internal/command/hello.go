package command

import (
	"context"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

// What hello promises at most. Wire version 21 is MongoDB 7.0's; 0 lets old drivers in.
const (
	minWireVersion    = 0
	maxWireVersion    = 21
	maxMessageBytes   = 48_000_000
	maxWriteBatchSize = 100_000
	maxMetadata       = 512 // bytes of a client document that are kept
)

// compressors are those that can be agreed on.
var compressors = map[string]bool{"snappy": true, "zlib": true, "zstd": true}

func (t *Table) hello(ctx context.Context, req *Request, reply *Reply) error {
	return t.answerHello(ctx, req, reply, "isWritablePrimary")
}

func (t *Table) isMaster(ctx context.Context, req *Request, reply *Reply) error {
	return t.answerHello(ctx, req, reply, "ismaster")
}

// answerHello answers as a router does, with the wire version that all servers behind it have. A server that is no member of a replica set refuses
// transaction numbers, and drivers send them to a router: with such a one behind, Oxbow answers as it would itself. A client that names the topology
// version it knows waits until that changes or maxAwaitTimeMS is over.
func (t *Table) answerHello(ctx context.Context, req *Request, reply *Reply, primary string) error {
	h, err := parseHello(req)
	if err != nil {
		return err
	}
	req.Conn.heard = t.deps.Now()
	if h.waits {
		if err := t.awaitTopology(ctx, h); err != nil {
			return err
		}
	}
	if req.Exhaust {
		if !h.waits {
			return mongoerr.New(51763, "A hello/isMaster request with exhaust must specify 'maxAwaitTimeMS'")
		}
		reply.Again = true
		reply.Next = t.nextHello(req.Body, h)
	}
	dst := bsoncore.AppendBooleanElement(reply.Elements, primary, true)
	servers := t.servers()
	if !servers.Standalone {
		dst = bsoncore.AppendStringElement(dst, "msg", "isdbgrid")
	}
	dst = t.topology.append(dst)
	if h.helloOK {
		dst = bsoncore.AppendBooleanElement(dst, "helloOk", true)
	}
	dst = bsoncore.AppendInt32Element(dst, "maxBsonObjectSize", bson.MaxDocumentSize)
	dst = bsoncore.AppendInt32Element(dst, "maxMessageSizeBytes", maxMessageBytes)
	dst = bsoncore.AppendInt32Element(dst, "maxWriteBatchSize", maxWriteBatchSize)
	dst = bsoncore.AppendDateTimeElement(dst, "localTime", t.deps.Now().UnixMilli())
	dst = bsoncore.AppendInt32Element(dst, "logicalSessionTimeoutMinutes", int32(cursor.SessionTimeout/time.Minute))
	dst = bsoncore.AppendInt64Element(dst, "connectionId", req.Conn.ID)
	dst = bsoncore.AppendInt32Element(dst, "maxWireVersion", servers.WireVersion)
	dst = bsoncore.AppendInt32Element(dst, "minWireVersion", minWireVersion)
	dst = bsoncore.AppendBooleanElement(dst, "readOnly", false)
	if len(req.Conn.Compressors) > 0 {
		dst = appendArray(dst, "compression", req.Conn.Compressors)
	}
	reply.Elements = t.appendLogin(req.Conn, h, dst)
	return nil
}

// helloArguments are what hello takes beside the generic arguments.
type helloArguments struct {
	helloOK   bool
	waits     bool // topologyVersion and maxAwaitTimeMS are there
	processID driver.ObjectID
	counter   int64
	await     time.Duration

	mechanismsOf string        // "database.user", whose mechanisms the client asks for
	speculative  bson.Document // a saslStart, or nil
}

// parseHello reads the arguments. Unknown ones are passed over, as MongoDB's hello does: newer drivers add some. The connection keeps
// the compressors and the first client document.
func parseHello(req *Request) (helloArguments, error) {
	var h helloArguments
	hasVersion, hasAwait := false, false
	it := bson.Elements(req.Body)
	it.Next()
	for it.Next() {
		v := it.Value()
		var err error
		switch string(it.Key()) {
		case "helloOk":
			h.helloOK = isTrue(v)
		case "topologyVersion":
			hasVersion = true
			err = h.topologyVersion(v)
		case "maxAwaitTimeMS":
			hasAwait = true
			err = h.awaitTime(v)
		case "saslSupportedMechs":
			h.mechanismsOf, _ = v.StringValueOK()
		case "speculativeAuthenticate":
			h.speculative, _ = v.DocumentOK()
		case "compression":
			err = agreeCompression(req.Conn, v)
		case "client":
			if doc, ok := v.DocumentOK(); ok && len(doc) <= maxMetadata && req.Conn.metadata.Load() == nil {
				kept := append(bson.Document(nil), doc...)
				req.Conn.metadata.Store(&kept)
			}
		}
		if err != nil {
			return h, err
		}
	}
	switch {
	case hasVersion && !hasAwait:
		return h, mongoerr.New(51760, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case hasAwait && !hasVersion:
		return h, mongoerr.New(51760, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	}
	h.waits = hasVersion
	return h, nil
}

func (h *helloArguments) topologyVersion(v bson.Value) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return wrongType("hello.topologyVersion", v.Type, "object")
	}
	id, ok := bson.Get(doc, "processId")
	if !ok {
		return missing("TopologyVersion.processId")
	}
	if h.processID, ok = id.ObjectIDOK(); !ok {
		return wrongType("TopologyVersion.processId", id.Type, "objectId")
	}
	counter, ok := bson.Get(doc, "counter")
	if !ok {
		return missing("TopologyVersion.counter")
	}
	if h.counter, ok = wholeNumber(counter); !ok {
		return wrongType("TopologyVersion.counter", counter.Type, "long")
	}
	if h.counter < 0 {
		return mongoerr.New(51758, "topologyVersion must have a non-negative counter")
	}
	return nil
}

func (h *helloArguments) awaitTime(v bson.Value) error {
	ms, ok := wholeNumber(v)
	if !ok {
		return wrongType("hello.maxAwaitTimeMS", v.Type, "long")
	}
	if ms < 0 {
		return mongoerr.New(51759, "maxAwaitTimeMS must be a non-negative integer")
	}
	const day = 24 * 60 * 60 * 1000
	h.await = time.Duration(min(ms, day)) * time.Millisecond
	return nil
}

// agreeCompression keeps, of the client's compressors, those that are known here, in the client's order.
func agreeCompression(conn *Conn, v bson.Value) error {
	a, ok := v.ArrayOK()
	if !ok {
		return wrongType("hello.compression", v.Type, "array")
	}
	conn.Compressors = nil
	it := bson.Elements(a)
	for it.Next() && len(conn.Compressors) < len(compressors) {
		if name, ok := it.Value().StringValueOK(); ok && compressors[name] {
			conn.Compressors = append(conn.Compressors, name)
		}
	}
	return nil
}

// awaitTopology waits while the topology is as the client knows it.
func (t *Table) awaitTopology(ctx context.Context, h helloArguments) error {
	if h.processID != t.topology.processID || h.counter != t.topology.counter.Load() {
		if h.processID == t.topology.processID && h.counter > t.topology.counter.Load() {
			return mongoerr.New(51761, "Received a topology version with counter: %d which is greater than the mongos topology version counter: %d",
				h.counter, t.topology.counter.Load())
		}
		return nil
	}
	timer := time.NewTimer(h.await)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.topology.stopping:
		return mongoerr.New(mongoerr.ShutdownInProgress, "The server is in quiesce mode and will shut down")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nextHello is the body of the next hello of an exhaust stream: nil for the same one, a copy with the present topology version when
// the client's was another one.
func (t *Table) nextHello(body bson.Document, h helloArguments) bson.Document {
	if h.processID == t.topology.processID && h.counter == t.topology.counter.Load() {
		return nil
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(body)))
	it := bson.Elements(body)
	for it.Next() {
		if string(it.Key()) == "topologyVersion" {
			dst = t.topology.append(dst)
		} else {
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func (t *topology) append(dst []byte) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "topologyVersion")
	dst = bsoncore.AppendObjectIDElement(dst, "processId", t.processID)
	dst = bsoncore.AppendInt64Element(dst, "counter", t.counter.Load())
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
