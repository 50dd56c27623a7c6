package exec

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// concern is the write concern error of a command's parts, with the labels of all: the first, or the first after which a driver may send the command
// again. It stands for all, and is told whatever became of the other parts: the write that it is about was done (https://www.mongodb.com/docs/manual/reference/write-concern/#wtimeout).
type concern struct {
	err    bson.Document // nil: none
	labels []string
}

// note keeps the write concern error of a part's reply, if it is to stand for those so far.
func (c *concern) note(part *backend.WriteReply) {
	if part.ConcernError == nil {
		return
	}
	if c.err == nil || !passes(c.err) && passes(part.ConcernError) {
		c.err = part.ConcernError
	}
	for _, l := range part.Labels {
		if !slices.Contains(c.labels, l) {
			c.labels = append(c.labels, l)
		}
	}
}

// passes reports whether a driver may send a command again after a write concern error.
func passes(concernError bson.Document) bool {
	v, _ := bson.Get(concernError, "code")
	n, _ := v.AsInt64OK()
	return mongoerr.Code(n).Retryable()
}

// inError returns the error of a command with the concern's beside it, where a server puts it.
func (c *concern) inError(err error) error {
	if c.err == nil {
		return err
	}
	failed := *mongoerr.From(err)
	if _, has := bson.Get(failed.Info, "writeConcernError"); !has {
		failed.Info = with(failed.Info, func(dst []byte) []byte {
			return bsoncore.AppendDocumentElement(dst, "writeConcernError", c.err)
		})
	}
	failed.Labels = slices.Clone(failed.Labels)
	for _, l := range c.labels {
		if !slices.Contains(failed.Labels, l) {
			failed.Labels = append(failed.Labels, l)
		}
	}
	return &failed
}

// inReply returns a reply with the concern's error and labels, unless it has one of its own.
func (c *concern) inReply(reply bson.Document) bson.Document {
	if c.err == nil {
		return reply
	}
	if _, has := bson.Get(reply, "writeConcernError"); has {
		return reply
	}
	return with(reply, func(dst []byte) []byte {
		dst = bsoncore.AppendDocumentElement(dst, "writeConcernError", c.err)
		return backend.AppendLabels(dst, c.labels)
	})
}

// with returns a copy of a document with elements appended; nil is the empty document.
func with(doc bson.Document, elements func(dst []byte) []byte) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	if doc != nil {
		dst = append(dst, doc[4:len(doc)-1]...)
	}
	dst, _ = bsoncore.AppendDocumentEnd(elements(dst), at)
	return dst
}
