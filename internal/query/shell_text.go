package query

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// elementText renders an element as MongoDB's error messages do: name: value.
func elementText(name string, v bson.Value) string { return name + ": " + valueText(v) }

// idText renders the _id of doc for an error message.
func idText(doc bson.Document) string {
	v, ok := bson.Get(doc, "_id")
	if !ok {
		return "no id"
	}
	return elementText("_id", v)
}

// maxText is about how much of a value an error message shows, in bytes.
const maxText = 2 << 10

// valueText renders a value as MongoDB's error messages do, which is close to what the shell prints; large ones in part.
func valueText(v bson.Value) string {
	var b strings.Builder
	writeText(&b, v)
	return b.String()
}

func writeText(b *strings.Builder, v bson.Value) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		s, _ := stringOf(v)
		fmt.Fprintf(b, "%q", shorten(s))
	case bson.TypeDocument:
		writeElements(b, v.Data, "{ ", " }", true)
	case bson.TypeArray:
		writeElements(b, v.Data, "[ ", " ]", false)
	case bson.TypeDouble:
		b.WriteString(doubleText(v.Double()))
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		n, _ := bson.NumberOf(v)
		b.WriteString(n.String())
	case bson.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case bson.TypeNull:
		b.WriteString("null")
	case bson.TypeUndefined:
		b.WriteString("undefined")
	case bson.TypeMinKey:
		b.WriteString("MinKey")
	case bson.TypeMaxKey:
		b.WriteString("MaxKey")
	case bson.TypeObjectID:
		b.WriteString("ObjectId('" + hex.EncodeToString(v.Data) + "')")
	case bson.TypeDateTime:
		b.WriteString("new Date(" + strconv.FormatInt(v.DateTime(), 10) + ")")
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(b, "Timestamp(%d, %d)", t, i)
	case bson.TypeRegex:
		pattern, options, _ := v.RegexOK()
		b.WriteString("/" + pattern + "/" + options)
	case bson.TypeBinary:
		subtype, data, _ := v.BinaryOK()
		fmt.Fprintf(b, "BinData(%d, %s)", subtype, shorten(fmt.Sprintf("%X", data[:min(len(data), maxText)])))
	default:
		b.WriteString(bson.TypeName(v.Type))
	}
}

func writeElements(b *strings.Builder, doc []byte, open, end string, keys bool) {
	it := bson.Elements(doc)
	separator := open
	for it.Next() {
		b.WriteString(separator)
		separator = ", "
		if b.Len() > maxText {
			b.WriteString("...")
			break
		}
		if keys {
			b.Write(it.Key())
			b.WriteString(": ")
		}
		writeText(b, it.Value())
	}
	if separator == open {
		b.WriteString(strings.TrimRight(open, " "))
		end = strings.TrimLeft(end, " ")
	}
	b.WriteString(end)
}

// shorten cuts a text to what a message shows of it.
func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "..."
}

// doubleText shows that a whole number is a double.
func doubleText(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// stringOf returns the text of a string or symbol.
func stringOf(v bson.Value) (string, bool) {
	if (v.Type != bson.TypeString && v.Type != bson.TypeSymbol) || len(v.Data) < 5 {
		return "", false
	}
	return string(v.Data[4 : len(v.Data)-1]), true
}

// wholeNumber returns the integer that a number of any type is, and false for fractions and everything else.
func wholeNumber(v bson.Value) (int64, bool) {
	n, ok := bson.NumberOf(v)
	if !ok {
		return 0, false
	}
	return n.Int64()
}

// valueDepth returns how deep documents and arrays are nested in v: 0 for a value that is neither.
func valueDepth(v bson.Value) int {
	data := v.Data
	switch v.Type {
	case bson.TypeDocument, bson.TypeArray:
	case bson.TypeCodeWithScope:
		_, scope, ok := v.CodeWithScopeOK()
		if !ok {
			return 0
		}
		data = scope
	default:
		return 0
	}
	deepest := 0
	it := bson.Elements(data)
	for it.Next() {
		deepest = max(deepest, valueDepth(it.Value()))
	}
	return deepest + 1
}

// tooDeep is the error for a document that an update would nest too deeply.
func tooDeep() error {
	return mongoerr.New(mongoerr.Overflow, "Document exceeds maximum nesting depth of %d", bson.MaxDepth)
}
