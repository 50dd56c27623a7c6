package engine

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"oxbow/internal/bson"
)

// classOf returns the interval of all values of t's class.
func classOf(t bson.Type) interval {
	low, high := bson.ClassKeys(t, false)
	text := classTexts[bson.Class(t)]
	return interval{cut{key: []byte{low}, text: text[0]}, cut{key: []byte{high}, text: text[1]}}
}

// classTexts are the ends of classes as explain shows them, by bson.Class.
var classTexts = map[int][2]string{
	bson.Class(bson.TypeMinKey):        {"MinKey", "undefined"},
	bson.Class(bson.TypeNull):          {"null", "nan"},
	bson.Class(bson.TypeDouble):        {"nan", "inf"},
	bson.Class(bson.TypeString):        {`""`, "{}"},
	bson.Class(bson.TypeDocument):      {"{}", "[]"},
	bson.Class(bson.TypeArray):         {"[]", "BinData(0, )"},
	bson.Class(bson.TypeBinary):        {"BinData(0, )", "ObjectId('000000000000000000000000')"},
	bson.Class(bson.TypeObjectID):      {"ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')"},
	bson.Class(bson.TypeBoolean):       {"false", "true"},
	bson.Class(bson.TypeDateTime):      {"new Date(-9223372036854775808)", "new Date(9223372036854775807)"},
	bson.Class(bson.TypeTimestamp):     {"Timestamp(0, 0)", "Timestamp(4294967295, 4294967295)"},
	bson.Class(bson.TypeRegex):         {"//", "DBRef"},
	bson.Class(bson.TypeDBPointer):     {"DBRef", "Code"},
	bson.Class(bson.TypeJavaScript):    {"Code", "CodeWScope"},
	bson.Class(bson.TypeCodeWithScope): {"CodeWScope", "MaxKey"},
	bson.Class(bson.TypeMaxKey):        {"MaxKey", "MaxKey"},
}

// nullish is where documents lie that have null, nothing or an empty array at the path: what sorts above MinKey and up to null.
func nullish() intervals {
	least, _ := bson.ClassKeys(0, false)
	return intervals{{cut{key: []byte{least}, text: "undefined"}, pointOf(bson.Null).hi}}
}

// leastNumber is the place before -Infinity: behind NaN, which no range reaches.
var leastNumber = sync.OnceValue(func() cut {
	return cut{key: bson.AppendKey(nil, doubleValue(math.Inf(-1)), false), text: "-inf"}
})

func doubleValue(f float64) bson.Value {
	return bson.Value{Type: bson.TypeDouble, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

// isNaN reports whether v is a number that is none.
func isNaN(v bson.Value) bool {
	return bson.IsNumber(v.Type) && bson.Compare(v, doubleValue(math.NaN())) == 0
}

// valueText shows a value as explain's indexBounds do.
func valueText(v bson.Value) string {
	switch v.Type {
	case bson.TypeMinKey:
		return "MinKey"
	case bson.TypeMaxKey:
		return "MaxKey"
	case bson.TypeNull:
		return "null"
	case bson.TypeUndefined:
		return "undefined"
	case bson.TypeDouble:
		f := v.Double()
		switch {
		case math.IsNaN(f):
			return "nan"
		case math.IsInf(f, 0):
			return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
		case f == math.Trunc(f) && math.Abs(f) < 1e15:
			return strconv.FormatFloat(f, 'f', 1, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case bson.TypeInt32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	case bson.TypeInt64:
		return strconv.FormatInt(v.Int64(), 10)
	case bson.TypeBoolean:
		return strconv.FormatBool(v.Boolean())
	case bson.TypeString:
		return strconv.Quote(v.StringValue())
	case bson.TypeDateTime:
		ms := v.DateTime()
		if ms < -62135596800000 || ms > 253402300799999 { // years 1 to 9999
			return fmt.Sprintf("new Date(%d)", ms)
		}
		return "ISODate(" + time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") + ")"
	case bson.TypeObjectID:
		oid := v.ObjectID()
		return "ObjectId('" + hex.EncodeToString(oid[:]) + "')"
	case bson.TypeDocument:
		return documentText(v.Data)
	case bson.TypeArray:
		return "[" + elementsText(v.Data, false) + "]"
	case 0:
		return "undefined"
	default:
		return v.String()
	}
}

// documentText shows a document as valueText shows values.
func documentText(d []byte) string { return "{" + elementsText(d, true) + "}" }

func elementsText(d []byte, keys bool) string {
	var parts []string
	it := bson.Elements(d)
	for it.Next() {
		text := valueText(it.Value())
		if keys {
			text = string(it.Key()) + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
