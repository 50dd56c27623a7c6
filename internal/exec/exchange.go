package exec

import (
	"context"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Exchange is what a command says to deployments, and hears from them, beside its own work: its client's session, transaction and cluster time. It
// goes with the command's context to wherever something is sent: a find sends from the streams that it opens, one by one, and those that outlive it send
// for the getMore that asks them. One a command; safe for concurrent use once it is put into a context.
//
// With one deployment its times are the client's: they pass both ways, and what several parts answer is reported as the newest of all. With several they
// mean nothing to a client, which takes all that it talks to for one: they are kept here (docs/decisions/0011-cluster-time.md).
type Exchange struct {
	Reports     bool          // the times go to the client
	LSID        bson.Document // the client's session as it sent it; nil: none
	ClusterTime bson.Document // the client's $clusterTime; nil: none
	Clocks      *Clocks       // the deployments' newest times; nil: they are not kept
	Times       Times         // what the session has seen; nil: it is not kept
	Waits       Waits         // what its reads wait for
	Writes      bool          // what the command answers is the time of a write
	Preference  bson.Document // the read preference of a plain collection's reads that name none; nil: none
	Transaction *Transaction  // the command is a statement of it; nil: of none

	mu struct {
		sync.Mutex
		parts     int           // replies to what was sent in the command's name
		operation Timestamp     // the largest operationTime of those
		cluster   bson.Document // their newest $clusterTime
		recovery  bson.Document // the latest recoveryToken
	}
}

// Times is what one session has seen of deployments.
type Times interface {
	// Wrote is the operation time of the session's last write on a deployment, Seen that of its last command; 0: none is known.
	Wrote(deployment string) uint64
	Seen(deployment string) uint64
	// Advance notes the operation time of a command's reply.
	Advance(deployment string, at uint64, wrote bool)
}

// Waits is what a session's reads wait for on a member that may be behind.
type Waits uint8

// A read waits for nothing, for the session's last write on its deployment, or for all that the session has seen there.
const (
	WaitsForNothing Waits = iota
	WaitsForOwnWrites
	WaitsForSeen
)

type exchangeKey struct{}

// WithExchange returns a context in which everything that is sent goes through an exchange.
func WithExchange(ctx context.Context, x *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// through sends a request with what the exchange has to say. own: its body is the client's as it came, with all that a client says; else it is a part
// of the command, put together here.
func (x *Exchange) through(ctx context.Context, e *Executor, name string, req *backend.Request, own bool) (bson.Document, error) {
	var change amendment
	if t := x.Transaction; t != nil {
		if err := t.take(ctx); err != nil {
			return nil, err
		}
		defer t.release()
		if err := t.join(name, e.Abilities(name)); err != nil {
			return nil, err
		}
		x.inTransaction(&change, name, req.Body, own)
	} else {
		x.outside(&change, name, req.Body, own)
	}
	if !change.empty() {
		changed := *req
		changed.Body = change.apply(req.Body)
		req = &changed
	}
	reply, err := e.run(ctx, name, req)
	if err != nil {
		return nil, err
	}
	return x.hear(name, reply, own), nil
}

// outside amends a command outside of transactions.
func (x *Exchange) outside(change *amendment, name string, body bson.Document, own bool) {
	waits := false
	if x.directs() && reads(body) {
		preference, _ := bson.Get(body, "$readPreference")
		if own && preference.Type == 0 && x.Preference != nil {
			change.elements = bsoncore.AppendDocumentElement(change.elements, "$readPreference", x.Preference)
			preference.Data = x.Preference
		}
		concern, _ := bson.Get(body, "readConcern")
		if at := x.waitsFor(name, preference.Data, concern.Data); at != 0 {
			change.replaceConcern(after(concern.Data, at))
			waits = true
		}
	}
	x.gossip(change, name, body, own, waits)
}

// directs reports whether reads are told where to go or what to wait for.
func (x *Exchange) directs() bool { return x.Waits != WaitsForNothing || x.Preference != nil }

// reads reports whether a command takes a read concern and a read preference.
func reads(body bson.Document) bool {
	switch name, _, _ := bson.First(body); name {
	case "find", "aggregate", "count", "distinct":
		return true
	}
	return false
}

// waitsFor returns the operation time that a read has to see, 0 for any. A read of the primary at the levels below majority is given no more by it than
// MongoDB promises without (https://www.mongodb.com/docs/manual/core/causal-consistency-read-write-concerns/), and other levels take none.
func (x *Exchange) waitsFor(name string, preference, concern bson.Document) uint64 {
	if x.Waits == WaitsForNothing || x.Times == nil {
		return 0
	}
	level := textOf(concern, "level")
	mode := textOf(preference, "mode")
	behind := mode != "" && mode != "primary"
	var at uint64
	switch {
	case level != "" && level != "local" && level != "majority":
		return 0
	case x.Waits == WaitsForOwnWrites && behind:
		at = x.Times.Wrote(name)
	case x.Waits == WaitsForSeen && (behind || level == "majority"):
		at = x.Times.Seen(name)
	}
	if asked, ok := timestampOf(concern, "afterClusterTime"); ok && asked >= at {
		return 0
	}
	return at
}

// gossip adds the cluster time that a deployment is to know of: what the client says, where its own times go to it, and what the gateway has heard of
// that deployment itself. A server refuses to wait for a time that it has not heard of. Kept times go with every command of a session but those that cost
// a long copy: nobody waits on account of these.
func (x *Exchange) gossip(change *amendment, name string, body bson.Document, own, waits bool) {
	known := x.Clocks.Of(name)
	switch {
	case x.Reports && own && !waits: // the client says it itself
	case x.Reports:
		if known = newer(x.ClusterTime, known); known != nil {
			change.replaceClusterTime(known)
		}
	case own && x.ClusterTime != nil, x.LSID != nil && known != nil && (waits || len(body) <= mostGossip):
		change.replaceClusterTime(known)
	}
}

// mostGossip is the size of a command's body beyond which no time is added to it, in bytes.
const mostGossip = 64 << 10

// inTransaction amends a statement of a transaction that is on the deployment of that name. The first one that is sent there begins it, whatever was the
// client's first; no other may name a read concern.
func (x *Exchange) inTransaction(change *amendment, name string, body bson.Document, own bool) {
	t := x.Transaction
	_, begins := bson.Get(body, "startTransaction")
	concern, waits := t.concern, false
	if !own {
		change.replaceConcern(nil)
		change.elements = bsoncore.AppendDocumentElement(change.elements, "lsid", x.LSID)
		change.elements = bsoncore.AppendInt64Element(change.elements, "txnNumber", t.Number)
		change.elements = bsoncore.AppendBooleanElement(change.elements, "autocommit", false)
	} else if v, ok := bson.Get(body, "readConcern"); ok {
		concern = v.Data
	}
	if !t.begun {
		if !own || !begins {
			change.elements = bsoncore.AppendBooleanElement(change.elements, "startTransaction", true)
		}
		if at := x.seen(name); at != 0 {
			concern, waits = after(concern, at), true
		}
		if concern != nil {
			change.replaceConcern(concern)
		}
		t.begun, t.concern = true, nil
	}
	x.gossip(change, name, body, own, waits)
}

// seen is what a transaction has to see of a deployment: all that its session has seen there.
func (x *Exchange) seen(name string) uint64 {
	if x.Waits != WaitsForSeen || x.Times == nil {
		return 0
	}
	return x.Times.Seen(name)
}

// hear notes the times of a reply, and returns it without them where they are not the client's.
func (x *Exchange) hear(name string, reply bson.Document, own bool) bson.Document {
	if own && x.Reports && x.Times == nil && x.Clocks == nil {
		return reply // the client hears it as it comes
	}
	var operation Timestamp
	var cluster, recovery bson.Document
	it := bson.Elements(reply)
	for it.Next() {
		switch string(it.Key()) {
		case "operationTime":
			operation, _ = timestamp(it.Value())
		case "$clusterTime":
			cluster, _ = it.Value().DocumentOK()
		case "recoveryToken":
			recovery, _ = it.Value().DocumentOK()
		}
	}
	if operation != 0 && x.Times != nil {
		x.Times.Advance(name, operation, x.Writes)
	}
	x.Clocks.Advance(name, cluster)
	if !own {
		x.collect(operation, cluster, recovery)
	} else if !x.Reports && (operation != 0 || cluster != nil) {
		reply = without(reply, "operationTime", "$clusterTime")
	}
	return reply
}

func (x *Exchange) collect(operation Timestamp, cluster, recovery bson.Document) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.parts++
	x.mu.operation = max(x.mu.operation, operation)
	if clusterTimeOf(cluster) > clusterTimeOf(x.mu.cluster) {
		x.mu.cluster = slices.Clone(cluster)
	}
	if recovery != nil {
		x.mu.recovery = slices.Clone(recovery)
	}
}

// AppendHeard appends what the client is to hear of the parts' replies: their times, and what its driver has to say at the end of a transaction.
func (x *Exchange) AppendHeard(dst []byte) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.recovery != nil {
		dst = bsoncore.AppendDocumentElement(dst, "recoveryToken", x.mu.recovery)
	}
	if !x.Reports {
		return dst
	}
	if x.mu.cluster != nil {
		dst = bsoncore.AppendDocumentElement(dst, "$clusterTime", x.mu.cluster)
	}
	if at := x.mu.operation; at != 0 {
		dst = bsoncore.AppendTimestampElement(dst, "operationTime", uint32(at>>32), uint32(at))
	}
	return dst
}

// InError returns an error with what the client is to hear beside it, where a server puts it.
func (x *Exchange) InError(err error) error {
	heard := x.AppendHeard(nil)
	if len(heard) == 0 {
		return err
	}
	told := *mongoerr.From(err)
	told.Info = with(told.Info, func(dst []byte) []byte { return append(dst, heard...) })
	return &told
}

// Heard returns a part's reply that is to be the whole command's, with the times of all parts; a reply to what the client sent itself stays as it is.
func (x *Exchange) Heard(reply bson.Document) bson.Document {
	x.mu.Lock()
	parts := x.mu.parts
	x.mu.Unlock()
	if parts == 0 {
		return reply
	}
	return with(without(slices.Clone(reply), "operationTime", "$clusterTime", "recoveryToken"), x.AppendHeard)
}
