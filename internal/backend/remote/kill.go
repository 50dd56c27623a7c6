package remote

import (
	"context"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// killTime bounds the attempt to kill a command where it runs.
const killTime = 10 * time.Second

// goesOn are the commands that a server does not end by itself when it loses the connection they came on
// (https://www.mongodb.com/docs/manual/release-notes/4.2/#terminates-currently-running-operations-if-the-client-disconnects).
var goesOn = map[string]bool{"insert": true, "update": true, "delete": true, "findAndModify": true, "findandmodify": true, "aggregate": true}

// wantsKill reports whether a command whose context has ended is to be killed where it runs: what an operator, its time limit or the loss of its client
// ended, but not what ends with the gateway.
func wantsKill(ctx context.Context, name string) bool {
	if ctx.Err() == nil || !goesOn[name] {
		return false
	}
	cause := context.Cause(ctx)
	return mongoerr.Is(cause, mongoerr.Interrupted) || mongoerr.Is(cause, mongoerr.ClientDisconnect) || mongoerr.Is(cause, mongoerr.MaxTimeMSExpired)
}

// killOn ends on a server, without waiting for it, the command that came on a connection that is lost. It goes by the number that the server gave the
// connection; nil: it gave none, before MongoDB 4.2.
func (b *Backend) killOn(server address.Address, connection *int64) {
	if connection == nil {
		return
	}
	b.kills.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		l, err := b.borrow(ctx, choice{holder: server})
		if err != nil {
			return // the server is gone, and what ran there with it
		}
		defer b.giveBack(l)
		l.killOf(ctx, *connection)
	})
}

// killOf kills what another connection to the server has running. Whoever sent a command may kill it, also without a role for that. A failure leaves the
// command to its end, as it would be without this.
func (l *loan) killOf(ctx context.Context, other int64) {
	reply, err := l.roundTrip(ctx, &backend.Request{Body: adminCommand(func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "currentOp", 1)
		dst = bsoncore.AppendBooleanElement(dst, "$ownOps", true)
		return bsoncore.AppendInt64Element(dst, "connectionId", other)
	})})
	if err != nil {
		return
	}
	list, _ := bson.Get(reply, "inprog")
	it := bson.Elements(list.Data)
	for it.Next() {
		op, ok := bson.Get(it.Value().Data, "opid")
		if !ok {
			continue
		}
		kill := adminCommand(func(dst []byte) []byte {
			return bsoncore.AppendValueElement(bsoncore.AppendInt32Element(dst, "killOp", 1), "op", op)
		})
		if _, err := l.roundTrip(ctx, &backend.Request{Body: kill}); err != nil {
			return
		}
	}
}

func adminCommand(elements func(dst []byte) []byte) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(elements(dst), "$db", "admin")
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
