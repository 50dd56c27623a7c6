package exec

import (
	"context"
	"crypto/sha256"
	"strconv"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Retry makes the parts of a write safe to send again (design, "Retries").
//
// A backend that takes a write over several namespaces keeps one record for all of them, so it gets the client's own session. On any other, parts for
// several partitions with one session and number would look like retries of each other, and would wait for each other: each part gets a session derived
// from the client's. Which one, has to come out the same at each try, or what was done already would be done again:
//
//   - what belongs to a place goes there at each try, so its session is derived from the partition;
//   - a statement that looks into one partition after the other can meet others at the next try, or find a match in one that had none: its session
//     is derived from the collection, so whichever partition it comes to, the deployment knows what it did in another, by the statement's number.
//
// What the second kind did on another deployment is asked there before anything is sent (see recorded).
type Retry struct {
	LSID      bson.Document // the client's
	Session   []byte        // what tells the client's session from all others, those of other users with the same UUID too
	TxnNumber int64
	Stmt      func(index int32) int32 // the stmtId of the command's statement
}

// append appends the session, transaction number and statement numbers of a part of a write.
func (r *Retry) append(body []byte, can backend.Abilities, scope scope, index []int32) []byte {
	if r == nil {
		return body
	}
	body = r.appendSession(body, can, scope)
	if first, ok := r.consecutive(index); ok {
		return appendNumber(body, first)
	}
	at, body := bsoncore.AppendArrayElementStart(body, "stmtIds")
	for i, n := range index {
		body = strconv.AppendInt(append(body, byte(bson.TypeInt32)), int64(i), 10)
		body = bsoncore.AppendInt32(append(body, 0), r.Stmt(n))
	}
	body, _ = bsoncore.AppendArrayEnd(body, at)
	return body
}

// appendOne is append for findAndModify, which has one statement.
func (r *Retry) appendOne(body []byte, can backend.Abilities, scope scope) []byte {
	if r == nil {
		return body
	}
	return appendNumber(r.appendSession(body, can, scope), r.Stmt(0))
}

// consecutive reports whether statements' numbers follow one another, and returns the first.
func (r *Retry) consecutive(index []int32) (first int32, ok bool) {
	first = r.Stmt(index[0])
	for i, n := range index {
		if r.Stmt(n) != first+int32(i) {
			return first, false
		}
	}
	return first, true
}

// appendNumber appends the number from which a server counts a command's statements; without it, it counts from 0.
func appendNumber(body []byte, first int32) []byte {
	if first == 0 {
		return body
	}
	return bsoncore.AppendInt32Element(body, "stmtId", first)
}

func (r *Retry) appendSession(body []byte, can backend.Abilities, scope scope) []byte {
	if can.OneBatch {
		body = bsoncore.AppendDocumentElement(body, "lsid", r.LSID)
	} else {
		body = scope.appendDerived(body, r.Session)
	}
	return bsoncore.AppendInt64Element(body, "txnNumber", r.TxnNumber)
}

// scope is what the session of a part is derived from: a partition, or else the collection.
type scope struct {
	partition  backend.Namespace
	collection string // "": it is the partition
}

func scopeOf(pinned bool, partition backend.Namespace, collection string) scope {
	if pinned {
		return scope{partition: partition}
	}
	return scope{collection: collection}
}

// appendDerived appends an lsid derived from a client's session: a UUID (version 8, of own making) from a hash of that session and the scope. A driver makes
// those of version 4, so no client's is ever one of these.
func (s scope) appendDerived(body, session []byte) []byte {
	var room [256]byte
	text := append(append(room[:0], byte(len(session))), session...)
	if s.collection == "" {
		text = append(append(append(append(text, "partition "...), s.partition.Database...), '.'), s.partition.Collection...)
	} else {
		text = append(append(text, "collection "...), s.collection...)
	}
	sum := sha256.Sum256(text)
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	at, body := bsoncore.AppendDocumentElementStart(body, "lsid")
	body = bsoncore.AppendHeader(body, bson.TypeBinary, "id")
	body = append(bsoncore.AppendInt32(body, int32(len(id))), 4) // the subtype of UUIDs
	body, _ = bsoncore.AppendDocumentEnd(append(body, id...), at)
	return body
}

// recorded asks deployments whether an earlier try of a statement did something there, and gives back what ask makes of the one that says so: sent with a
// filter that matches nothing, the statement is answered from the record, where there is one, and does nothing elsewhere. The deployment of except is not
// asked: what is sent there next asks by itself.
func recorded(targets []plan.Target, except string, ask func(t plan.Target) (found bool, err error)) (bool, error) {
	asked := map[string]bool{except: true}
	for _, t := range targets {
		if asked[t.Backend] {
			continue
		}
		asked[t.Backend] = true
		if found, err := ask(t); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// nowhere narrows a filter to nothing.
func nowhere(filter bson.Document) bson.Document {
	none := bsoncore.NewDocumentBuilder().AppendArray("$in", bsoncore.NewArrayBuilder().Build()).Build()
	return withID(filter, bson.Value{Type: bson.TypeDocument, Data: none})
}

// recordedFirst is the outcome of an earlier try of a statement that looks into one partition after the other, on another deployment than that of the first.
func (w *writing) recordedFirst(ctx context.Context, s *plan.First) (o outcome, found bool) {
	if w.options.Retry == nil || s.Pinned || len(s.Routed.Targets) == 0 {
		return outcome{}, false
	}
	targets := s.Routed.Targets
	if s.Upsert != nil && s.Upsert.Target != nil {
		targets = append(targets[:len(targets):len(targets)], *s.Upsert.Target)
	}
	found, _ = recorded(targets, targets[0].Backend, func(t plan.Target) (bool, error) {
		o = w.one(ctx, t, s.Index, filteredOut(s.Statement), false)
		return o.reply.N > 0 || len(o.reply.Errors) > 0, o.err
	})
	return o, found || o.err != nil
}

// filteredOut is a statement of an update or delete with a filter that matches nothing.
func filteredOut(statement bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(statement)+64))
	it := bson.Elements(statement)
	for it.Next() {
		if string(it.Key()) == "q" {
			dst = bsoncore.AppendDocumentElement(dst, "q", nowhere(it.Value().Data))
		} else {
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// recordedInsert is the code of a server that has an insert on record where the findAndModify that is sent again has no upsert: true.
const recordedInsert mongoerr.Code = 40608
