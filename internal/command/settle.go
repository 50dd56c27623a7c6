package command

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// A driver takes some errors for news of the server that sent them: it is no primary, it shuts down. It then forgets what it knew of that server,
// and after some closes all connections to it. Coming through a router they are news of somebody else. So, as mongos does, a state change of a backend is
// told as HostUnreachable, after which a driver sends again what may be sent again and thinks nothing of the gateway
// (https://github.com/mongodb/specifications, server discovery and monitoring, "Not writable primary and node is recovering").

// The labels that a router gives.
const (
	retryableWriteError       = "RetryableWriteError"
	transientTransactionError = "TransientTransactionError"
)

// settled returns a whole reply as a router gives it: state changes of backends are covered, and what a driver may send again has the label that
// makes it do so, whether the backend set it (from 4.4 on) or not. False: the reply can stay as it is.
func (t *Table) settled(reply bson.Document, entry *Entry, req *Request) (bson.Document, bool) {
	f := t.failuresOf(reply, entry)
	if !f.any {
		return nil, false
	}
	label := ""
	if f.retryable {
		label = labelFor(entry, req, f.failed)
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(reply)+64))
	labelled := label == ""
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch key := string(it.Key()); {
		case key == "errorLabels" && label != "":
			dst = appendArray(dst, key, withLabel(v, label))
			labelled = true
		case key == "writeConcernError" && v.Type == bson.TypeDocument:
			dst = bsoncore.AppendDocumentElement(dst, key, t.covered(v.Data))
		case key == "writeErrors" && v.Type == bson.TypeArray:
			dst = bsoncore.AppendArrayElement(dst, key, t.coveredAll(v.Data))
		case f.failed && f.cover:
			dst = appendCovered(dst, key, it.Raw(), v)
		default:
			dst = append(dst, it.Raw()...)
		}
	}
	if !labelled {
		dst = appendArray(dst, "errorLabels", []string{label})
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst, true
}

// replyFailures is what a reply says went wrong, as far as it has to be settled.
type replyFailures struct {
	any       bool // there is something to settle
	failed    bool // the command as a whole failed
	cover     bool // with a state change
	retryable bool // a driver may send the command again
}

// failuresOf looks at the fields of a reply. Only writes have errors beside ok: 1.
func (t *Table) failuresOf(reply bson.Document, entry *Entry) replyFailures {
	var f replyFailures
	var code mongoerr.Code
	writes := entry == nil || entry.Writes
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "ok":
			f.failed = !isTrue(v)
		case "code":
			n, _ := v.AsInt64OK()
			code = mongoerr.Code(n)
		case "writeConcernError":
			if writes && v.Type == bson.TypeDocument {
				f.any = true
				f.retryable = f.retryable || codeIn(v.Data).Retryable()
			}
		case "writeErrors":
			f.any = f.any || writes && t.coversAny(v.Data)
		}
	}
	if !f.failed {
		return f
	}
	f.cover = t.isNews(code)
	f.retryable = f.retryable || code.Retryable()
	f.any = f.any || f.cover || f.retryable
	return f
}

// isNews reports whether a driver would take an error for news of the gateway that are none. While the gateway itself leaves, that a server leaves is true of it.
func (t *Table) isNews(code mongoerr.Code) bool {
	return code.NotPrimary() || code.Shutdown() && !t.topology.draining()
}

// codeIn is the code of an error inside a reply.
func codeIn(doc bson.Document) mongoerr.Code {
	v, _ := bson.Get(doc, "code")
	n, _ := v.AsInt64OK()
	return mongoerr.Code(n)
}

func (t *Table) coversAny(errs []byte) bool {
	it := bson.Elements(errs)
	for it.Next() {
		if t.isNews(codeIn(it.Value().Data)) {
			return true
		}
	}
	return false
}

func (t *Table) coveredAll(errs []byte) []byte {
	at, dst := bsoncore.AppendDocumentStart(nil)
	it := bson.Elements(errs)
	for it.Next() {
		dst = bsoncore.AppendDocumentElement(dst, string(it.Key()), t.covered(it.Value().Data))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// covered returns an error inside a reply without the news.
func (t *Table) covered(doc bson.Document) bson.Document {
	if !t.isNews(codeIn(doc)) {
		return doc
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)+16))
	it := bson.Elements(doc)
	for it.Next() {
		dst = appendCovered(dst, string(it.Key()), it.Raw(), it.Value())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendCovered appends one field of an error that is a state change.
func appendCovered(dst []byte, key string, raw []byte, v bson.Value) []byte {
	switch key {
	case "code":
		return bsoncore.AppendInt32Element(dst, key, int32(mongoerr.HostUnreachable))
	case "codeName":
		return bsoncore.AppendStringElement(dst, key, mongoerr.HostUnreachable.String())
	case "topologyVersion": // the backend's
		return dst
	case "errmsg":
		if text, ok := v.StringValueOK(); ok {
			return bsoncore.AppendStringElement(dst, key, coveredWords.Replace(text))
		}
	}
	return append(dst, raw...)
}

// coveredWords are those by which old drivers know a state change, and what mongos puts in their place.
var coveredWords = strings.NewReplacer("not master", "(NOT_PRIMARY)", "node is recovering", "(NODE_IS_RECOVERING)")

// labelFor is the label that makes a driver send a command again, or "". failed: it failed as a whole; else a write concern did.
func labelFor(entry *Entry, req *Request, failed bool) string {
	switch {
	case entry == nil || !req.HasTxnNumber:
		return ""
	case req.InTransaction && !entry.EndsTransaction:
		if failed {
			return transientTransactionError
		}
		return ""
	case entry.Writes:
		return retryableWriteError
	}
	return ""
}

func withLabel(v bson.Value, label string) []string {
	var labels []string
	it := bson.Elements(v.Data)
	for it.Next() {
		if s, ok := it.Value().StringValueOK(); ok {
			labels = append(labels, s)
		}
	}
	if !slices.Contains(labels, label) {
		labels = append(labels, label)
	}
	return labels
}
