package engine

import (
	"encoding/hex"
	"strconv"

	"oxbow/internal/bson"
)

// appendShell appends a document as MongoDB's messages print one: { name: "x", n: 1 }.
func appendShell(dst []byte, doc bson.Document) []byte {
	it := bson.Elements(doc)
	sep := "{ "
	for it.Next() {
		dst = append(append(append(dst, sep...), it.Key()...), ": "...)
		dst = appendShellValue(dst, it.Value())
		sep = ", "
	}
	if sep == "{ " {
		return append(dst, "{}"...)
	}
	return append(dst, " }"...)
}

func appendShellValue(dst []byte, v bson.Value) []byte {
	switch v.Type {
	case bson.TypeString:
		return append(append(append(dst, '"'), v.StringValue()...), '"')
	case bson.TypeInt32:
		return strconv.AppendInt(dst, int64(v.Int32()), 10)
	case bson.TypeInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case bson.TypeDouble:
		f := v.Double()
		dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
		if f == float64(int64(f)) && f < 1e15 && f > -1e15 {
			dst = append(dst, ".0"...)
		}
		return dst
	case bson.TypeBoolean:
		return strconv.AppendBool(dst, v.Boolean())
	case bson.TypeNull:
		return append(dst, "null"...)
	case bson.TypeUndefined, 0:
		return append(dst, "undefined"...)
	case bson.TypeObjectID:
		return append(append(append(dst, "ObjectId('"...), hex.EncodeToString(v.Data)...), "')"...)
	case bson.TypeDateTime:
		return append(strconv.AppendInt(append(dst, "new Date("...), v.DateTime(), 10), ')')
	case bson.TypeDocument:
		return appendShell(dst, v.Data)
	case bson.TypeArray:
		return appendShellArray(dst, v.Data)
	}
	return append(dst, v.String()...)
}

func appendShellArray(dst []byte, array bson.Document) []byte {
	it := bson.Elements(array)
	sep := "[ "
	for it.Next() {
		dst = appendShellValue(append(dst, sep...), it.Value())
		sep = ", "
	}
	if sep == "[ " {
		return append(dst, "[]"...)
	}
	return append(dst, " ]"...)
}
