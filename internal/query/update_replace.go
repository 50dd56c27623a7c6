package query

import (
	"bytes"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// replacement is an update that replaces all but _id.
type replacement struct {
	doc    bson.Document
	dollar string // a top-level field whose name begins with a $, which only an insert may have
}

func parseReplacement(doc bson.Document, filters map[string]*arrayFilter, opts UpdateOptions) (*replacement, error) {
	if opts.Multi {
		return nil, mongoerr.New(mongoerr.FailedToParse, "multi update is not supported for replacement-style update")
	}
	if len(filters) > 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for replacement-style updates")
	}
	r := &replacement{doc: stampTimestamps(doc, opts.Env)}
	it := bson.Elements(doc)
	for it.Next() {
		if key := it.Key(); len(key) > 0 && key[0] == '$' && r.dollar == "" {
			r.dollar = string(key)
		}
	}
	if it.Err() != nil {
		return nil, mongoerr.New(mongoerr.InvalidBSON, "the replacement document is malformed")
	}
	return r, nil
}

// stampTimestamps puts the command's time where a top-level field other than _id is an empty timestamp, as MongoDB does
// (https://www.mongodb.com/docs/manual/reference/bson-types/#timestamps).
func stampTimestamps(doc bson.Document, env Env) bson.Document {
	var empty [8]byte
	stamped := false
	it := bson.Elements(doc)
	at := 4
	for it.Next() {
		at += len(it.Raw())
		v := it.Value()
		if v.Type != bson.TypeTimestamp || !bytes.Equal(v.Data, empty[:]) || string(it.Key()) == "_id" {
			continue
		}
		if !stamped {
			doc, stamped = bytes.Clone(doc), true
		}
		copy(doc[at-8:at], timestampOf(env).Data)
	}
	return doc
}

func (r *replacement) apply(dst []byte, doc bson.Document, insert bool) ([]byte, bool, error) {
	if r.dollar != "" && !insert {
		return dst, false, dollarField(r.dollar)
	}
	return appendReplaced(dst, doc, r.doc)
}

// appendReplaced appends next with doc's _id, which next may repeat but not change.
func appendReplaced(dst []byte, doc, next bson.Document) ([]byte, bool, error) {
	old, had := bson.Get(doc, "_id")
	id, has := bson.Get(next, "_id")
	switch {
	case !has:
		id, has = old, had
	case had && bson.Compare(old, id) != 0:
		return dst, false, mongoerr.New(mongoerr.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to %s", elementText("_id", id))
	}
	start := len(dst)
	dst = appendIDFirst(dst, next, id, has)
	return dst, !bytes.Equal(dst[start:], doc), nil
}

// appendIDFirst appends doc with the given _id, if there is one, as its first field.
func appendIDFirst(dst []byte, doc bson.Document, id bson.Value, has bool) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if has {
		dst = append(dst, byte(id.Type), '_', 'i', 'd', 0)
		dst = append(dst, id.Data...)
	}
	it := bson.Elements(doc)
	for it.Next() {
		if string(it.Key()) != "_id" {
			dst = append(dst, it.Raw()...)
		}
	}
	return finish(dst, start)
}
