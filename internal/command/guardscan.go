package command

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// scan is a command, or a statement of one, that may read a collection as a whole.
type scan struct {
	filter, sort bson.Document
	distinct     string        // the field whose values are asked for; "": documents are
	statement    bson.Document // of a write; nil: the command as a whole
}

// scansOf returns what of a command may read a whole collection and could be served by an index. What has neither a filter nor a sort reads all that there
// is because it was told to, as MongoDB's own parameter notablescan takes it too.
func scansOf(req *Request) []scan {
	var all []scan
	add := func(s scan) {
		of := req.Body
		if s.statement != nil {
			of = s.statement
		}
		byID := asksForID(s.filter) && !choosesIndex(of)
		if len(s.filter) > len(emptyDocument) && !byID || len(s.sort) > len(emptyDocument) || s.distinct != "" && !byID {
			all = append(all, s)
		}
	}
	switch req.Name {
	case "find":
		if !truthy(req.Body, "tailable") {
			add(scan{filter: documentOf(req.Body, "filter"), sort: documentOf(req.Body, "sort")})
		}
	case "count":
		add(scan{filter: documentOf(req.Body, "query")})
	case "distinct":
		key, _ := bson.Get(req.Body, "key")
		field, _ := key.StringValueOK()
		add(scan{filter: documentOf(req.Body, "query"), distinct: field})
	case "findAndModify":
		add(scan{filter: documentOf(req.Body, "query"), sort: documentOf(req.Body, "sort")})
	case "aggregate":
		if !truthy(req.Body, "explain") {
			add(headOf(req.Body))
		}
	case "delete":
		req.eachStatement("deletes", func(s bson.Document) {
			if limit, _ := bson.Get(s, "limit"); isZero(limit) {
				add(scan{filter: documentOf(s, "q"), statement: s})
			}
		})
	case "update":
		req.eachStatement("updates", func(s bson.Document) {
			if truthy(s, "multi") {
				add(scan{filter: documentOf(s, "q"), statement: s})
			}
		})
	}
	return all
}

// headOf returns what a pipeline matches and sorts by before anything else.
func headOf(body bson.Document) scan {
	var s scan
	pipeline, _ := bson.Get(body, "pipeline")
	if pipeline.Type != bson.TypeArray {
		return s
	}
	it := bson.Elements(pipeline.Data)
	for it.Next() {
		stage, argument, _ := bson.First(it.Value().Data)
		switch {
		case stage == "$match" && s.filter == nil && s.sort == nil:
			s.filter, _ = argument.DocumentOK()
		case stage == "$sort" && s.sort == nil:
			s.sort, _ = argument.DocumentOK()
		default:
			return s
		}
	}
	return s
}

// asksForID reports whether a filter names documents by their _id, which every collection has an index on.
func asksForID(filter bson.Document) bool {
	id, ok := bson.Get(filter, "_id")
	if !ok {
		return false
	}
	operators, isDocument := id.DocumentOK()
	if !isDocument {
		return id.Type != bson.TypeRegex
	}
	first, _, _ := bson.First(operators)
	return !strings.HasPrefix(first, "$") || first == "$eq" || first == "$in"
}

// choosesIndex reports whether a command names the index that serves it, or a collation, which the index on _id may not have.
func choosesIndex(command bson.Document) bool {
	_, hinted := bson.Get(command, "hint")
	_, collated := bson.Get(command, "collation")
	return hinted || collated
}

// dependsOnValue reports whether filters of one shape may differ in what an index is worth to them: with a regular expression, by its prefix, and $exists.
func dependsOnValue(filter bson.Document) bool {
	for it := bson.Elements(filter); len(filter) > 0 && it.Next(); {
		v, key := it.Value(), string(it.Key())
		if v.Type == bson.TypeRegex || key == "$regex" || key == "$exists" ||
			(v.Type == bson.TypeDocument || v.Type == bson.TypeArray) && dependsOnValue(v.Data) {
			return true
		}
	}
	return false
}

func documentOf(doc bson.Document, key string) bson.Document {
	v, _ := bson.Get(doc, key)
	sub, _ := v.DocumentOK()
	return sub
}

func isZero(v bson.Value) bool {
	n, ok := bson.NumberOf(v)
	return ok && n.IsZero()
}

// optionsOf are the bytes of what else decides which index serves a command.
func optionsOf(req *Request, s *scan) []byte {
	from := req.Body
	if s.statement != nil {
		from = s.statement
	}
	var dst []byte
	for _, name := range [...]string{"hint", "collation", "min", "max"} {
		if v, ok := bson.Get(from, name); ok {
			dst = bsoncore.AppendValueElement(dst, name, v)
		}
	}
	return dst
}

// explainable is the command with one statement of it, and without what is the client's alone.
func explainable(req *Request, s *scan) *Request {
	at, dst := bsoncore.AppendDocumentStart(nil)
	it := bson.Elements(req.Body)
	for it.Next() {
		key := string(it.Key())
		if generic[key] || s.statement != nil && (key == "deletes" || key == "updates") {
			continue
		}
		dst = append(dst, it.Raw()...)
	}
	if s.statement != nil {
		dst = bsoncore.AppendArrayElement(dst, req.Name+"s", bsoncore.NewArrayBuilder().AppendDocument(s.statement).Build())
	}
	dst = bsoncore.AppendStringElement(dst, "$db", req.Database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return &Request{Name: req.Name, Argument: req.Argument, Database: req.Database, Body: dst}
}

// order is what the keys of an index are to give in order: those that are sorted by, or whose values are asked for.
func (s *scan) order() bson.Document {
	if s.distinct == "" {
		return s.sort
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendInt32Element(dst, s.distinct, 1), at)
	return dst
}

// text is the shape of what is asked.
func (s *scan) text() string {
	text := query.AppendShape(nil, s.filter)
	if s.distinct != "" {
		text = append(append(text, " for the values of "...), s.distinct...)
	}
	if len(s.sort) > len(emptyDocument) {
		text = append(append(text, " sorted by "...), bson.Value{Type: bson.TypeDocument, Data: s.sort}.String()...)
	}
	return string(text)
}
