package backend

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// RenameError returns a server's error with another namespace ("db.coll") in the place of a physical one, which means nothing to whoever sent the
// command to the other. It looks for the name as a whole in the message, the key of a duplicate key's message left out, and in fields of Info that
// hold a namespace.
func RenameError(e *mongoerr.Error, physical Namespace, name string) *mongoerr.Error {
	from := physical.String()
	if from == name || !strings.Contains(e.Message, from) && !strings.Contains(string(e.Info), from) {
		return e
	}
	renamed := *e
	text, key, isKey := strings.Cut(e.Message, " dup key: ")
	renamed.Message = replaceName(text, from, name)
	if isKey {
		renamed.Message += " dup key: " + key
	}
	if e.Info != nil {
		renamed.Info = RenameFields(e.Info, physical, name)
	}
	return &renamed
}

// RenameFields returns a reply, or a part of one, with another namespace in the place of a physical one in all fields called ns, namespace or
// collectionName, at any depth. Documents of users are not to be passed through it.
func RenameFields(doc bson.Document, physical Namespace, name string) bson.Document {
	if !strings.Contains(string(doc), physical.String()) {
		return doc
	}
	return appendRenamed(make([]byte, 0, len(doc)+len(name)), doc, physical.String(), name)
}

func appendRenamed(dst []byte, doc bson.Document, from, to string) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	it := bson.Elements(doc)
	for it.Next() {
		v, key := it.Value(), string(it.Key())
		text, isText := v.StringValueOK()
		switch {
		case v.Type == bson.TypeDocument || v.Type == bson.TypeArray:
			dst = bsoncore.AppendHeader(dst, v.Type, key)
			dst = appendRenamed(dst, v.Data, from, to)
		case isText && text == from && (key == "ns" || key == "namespace" || key == "collectionName"):
			dst = bsoncore.AppendStringElement(dst, key, to)
		default:
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// replaceName replaces a name where it does not stand inside a longer one: orders.may in orders.may2 and in old.orders.may is another name.
func replaceName(text, from, to string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		i := strings.Index(text[at:], from)
		if i < 0 {
			b.WriteString(text[done:])
			return b.String()
		}
		begin, end := at+i, at+i+len(from)
		if (begin == 0 || !inName(text[begin-1])) && !continues(text[end:]) {
			b.WriteString(text[done:begin])
			b.WriteString(to)
			done = end
		}
		at = end
	}
}

// continues reports whether text goes on with the name that ended before it. A full stop that ends a sentence does not.
func continues(text string) bool {
	if text == "" {
		return false
	}
	if text[0] == '.' {
		return len(text) > 1 && inName(text[1])
	}
	return inName(text[0])
}

// inName tells the bytes that names are mostly made of; a text may surround a name with any other.
func inName(c byte) bool {
	return c >= 0x80 || c == '_' || c == '-' || c == '$' || c == '.' ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
