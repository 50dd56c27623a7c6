package query

import "oxbow/internal/bson"

// AppendShape appends the shape of a filter: its fields and operators, with ? in the place of what they are compared with. null and what $exists is
// asked stay, since an index may serve one and not the other. Two filters of one shape find their documents by the same indexes, partial ones
// excepted.
func AppendShape(dst []byte, filter bson.Document) []byte {
	dst = append(dst, '{')
	first := true
	it := bson.Elements(filter)
	for len(filter) > 0 && it.Next() {
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = append(append(dst, it.Key()...), ": "...)
		dst = appendValueShape(dst, string(it.Key()), it.Value())
	}
	return append(dst, '}')
}

func appendValueShape(dst []byte, key string, v bson.Value) []byte {
	switch {
	case v.Type == bson.TypeNull:
		return append(dst, "null"...)
	case key == "$exists":
		if n, ok := bson.NumberOf(v); v.Type == bson.TypeBoolean && !v.Boolean() || ok && n.IsZero() {
			return append(dst, "false"...)
		}
		return append(dst, "true"...)
	case v.Type == bson.TypeDocument && asksBelow(key, v.Data):
		return AppendShape(dst, v.Data)
	case v.Type == bson.TypeArray && (key == "$and" || key == "$or" || key == "$nor"):
		dst = append(dst, '[')
		it := bson.Elements(v.Data)
		for i := 0; it.Next(); i++ {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			if doc, ok := it.Value().DocumentOK(); ok {
				dst = AppendShape(dst, doc)
			} else {
				dst = append(dst, '?')
			}
		}
		return append(dst, ']')
	case v.Type == bson.TypeRegex:
		return append(dst, "/?/"...)
	}
	return append(dst, '?')
}

// asksBelow reports whether a document is a part of the filter, and no value that is compared with.
func asksBelow(key string, doc bson.Document) bool {
	if key == "$elemMatch" || key == "$not" {
		return true
	}
	it := bson.Elements(doc)
	return it.Next() && len(it.Key()) > 0 && it.Key()[0] == '$' && string(it.Key()) != "$ref" && string(it.Key()) != "$id"
}
