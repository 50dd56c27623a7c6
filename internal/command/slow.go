package command

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// shownPlan is how much of a plan the log of slow commands shows, in bytes.
const shownPlan = 2 << 10

// logSlow writes a line about a command that took longer than the limit, with its route and plan where it has one. A command that waits because it was
// told to is not slow.
func (t *Table) logSlow(req *Request, entry *Entry, took time.Duration, code mongoerr.Code) {
	if t.deps.Slow <= 0 || took < t.deps.Slow || entry == nil || entry.Unlisted || entry.Awaits && req.MaxTime > 0 {
		return
	}
	attributes := []any{"command", req.Name, "namespace", namespaceOf(req, entry), "took", took, "connection", req.Conn.ID, "body", shownBody(req.Body, t.secret(entry, req))}
	if who := req.Conn.who.Load(); who != nil {
		attributes = append(attributes, "user", who.String())
	}
	if code != 0 {
		attributes = append(attributes, "error", code.String())
	}
	if req.Plan != nil {
		attributes = append(attributes, "plan", cut(req.Plan.String(), shownPlan))
	}
	t.deps.Log.Info("slow command", attributes...)
}

// shownBody is a command's text as currentOp shows it.
func shownBody(body bson.Document, secret bool) string {
	at, dst := bsoncore.AppendDocumentStart(nil)
	if secret {
		dst = appendName(dst, "command", body)
	} else {
		dst = appendCommand(dst, "command", body)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	v, _ := bson.Get(dst, "command")
	return v.String()
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
