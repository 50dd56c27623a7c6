package bsontest

import (
	"math"
	"strconv"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
)

// Values generates values of every type, nested at most depth times.
func Values(depth int) *rapid.Generator[bson.Value] {
	return rapid.Custom(func(t *rapid.T) bson.Value {
		kinds := 21
		if depth > 0 {
			kinds = 25
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return bson.Value{Type: bson.TypeMinKey}
		case 1:
			return bson.Value{Type: bson.TypeMaxKey}
		case 2:
			return bson.Value{Type: bson.TypeUndefined}
		case 3:
			return bson.Null
		case 4, 5, 6:
			return value(bson.TypeString, bsoncore.AppendString(nil, texts.Draw(t, "string")))
		case 7:
			return value(bson.TypeSymbol, bsoncore.AppendString(nil, texts.Draw(t, "symbol")))
		case 8:
			return value(bson.TypeJavaScript, bsoncore.AppendString(nil, texts.Draw(t, "code")))
		case 9:
			return value(bson.TypeBinary, bsoncore.AppendBinary(nil, rapid.SampledFrom([]byte{0, 2, 4, 128}).Draw(t, "subtype"), rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "bytes")))
		case 10:
			return value(bson.TypeBoolean, bsoncore.AppendBoolean(nil, rapid.Bool().Draw(t, "boolean")))
		case 11:
			return value(bson.TypeDateTime, bsoncore.AppendDateTime(nil, integers.Draw(t, "date")))
		case 12:
			n := integers.Draw(t, "timestamp")
			return value(bson.TypeTimestamp, bsoncore.AppendTimestamp(nil, uint32(n>>32), uint32(n)))
		case 13:
			return value(bson.TypeRegex, bsoncore.AppendRegex(nil, rapid.StringMatching("[ab.]{0,2}").Draw(t, "pattern"), rapid.StringMatching("i?m?").Draw(t, "options")))
		case 14:
			return value(bson.TypeObjectID, rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "id"))
		case 15:
			return value(bson.TypeDBPointer, bsoncore.AppendDBPointer(nil, texts.Draw(t, "collection"), driver.ObjectID{rapid.Byte().Draw(t, "id")}))
		case 22, 23:
			return value(bson.TypeDocument, Documents(depth-1).Draw(t, "document"))
		case 24, 25:
			return value(bson.TypeArray, arrays(depth-1).Draw(t, "array"))
		default:
			return Numbers().Draw(t, "number").Value()
		}
	})
}

// Documents generates documents whose values are nested at most depth times. Keys are few and short, and may repeat.
func Documents(depth int) *rapid.Generator[bson.Document] {
	return rapid.Custom(func(t *rapid.T) bson.Document {
		start, doc := bsoncore.AppendDocumentStart(nil)
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			v := Values(depth).Draw(t, "value")
			doc = append(bsoncore.AppendHeader(doc, v.Type, keys.Draw(t, "key")), v.Data...)
		}
		doc, _ = bsoncore.AppendDocumentEnd(doc, start)
		return doc
	})
}

// Numbers generates numbers of the four types, many of them equal or next to one another.
func Numbers() *rapid.Generator[bson.Number] {
	return rapid.Custom(func(t *rapid.T) bson.Number {
		switch rapid.IntRange(0, 5).Draw(t, "number type") {
		case 0:
			return bson.Int32(int32(integers.Draw(t, "int32")))
		case 1:
			return bson.Int64(integers.Draw(t, "int64"))
		case 2:
			return bson.Double(doubles.Draw(t, "double"))
		case 3:
			return bson.Int64(integers.Draw(t, "integer decimal")).Decimal()
		case 4:
			// A double's first digits, exactly or not.
			n, err := bson.ParseDecimal(strconv.FormatFloat(doubles.Draw(t, "like a double"), 'e', rapid.SampledFrom([]int{-1, 20, 33}).Draw(t, "digits"), 64))
			if err != nil {
				t.Fatalf("a double is no decimal: %v", err)
			}
			return n
		default:
			text := rapid.StringMatching(`-?(0|12|[1-9][0-9]{0,33})E(0|-?[1-9]|-?[1-9][0-9]|-?[1-9][0-9]{2,3})`).Draw(t, "decimal")
			n, err := bson.ParseDecimal(text)
			if err != nil {
				t.Fatalf("%s is no decimal: %v", text, err)
			}
			return n
		}
	})
}

var (
	keys  = rapid.SampledFrom([]string{"a", "b", "c", "0", "1", ""})
	texts = rapid.OneOf(rapid.StringMatching("[a\x00\x01\x02b]{0,4}"), rapid.StringN(0, 4, 12))

	integers = rapid.OneOf(
		rapid.Int64Range(-300, 300),
		rapid.Int64(),
		near(1<<31), near(1<<53), near(1<<62), near(math.MaxInt64), near(math.MinInt64),
	)
	doubles = rapid.OneOf(
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 0.1, 0.5, 1.5, 12.34,
			math.SmallestNonzeroFloat64, math.MaxFloat64, 1 << 63, -1 << 63, 1 << 64, 1 << 53, 0x1p-1022}),
		rapid.Custom(func(t *rapid.T) float64 { return float64(integers.Draw(t, "whole")) }),
		rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.Int64Range(-999, 999).Draw(t, "hundredths")) / 100 }),
		rapid.Float64(),
	)
)

func near(n int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 { return n + rapid.Int64Range(-2, 2).Draw(t, "near") })
}

func arrays(depth int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		start, array := bsoncore.AppendArrayStart(nil)
		for i := range rapid.IntRange(0, 3).Draw(t, "elements") {
			v := Values(depth).Draw(t, "element")
			array = append(bsoncore.AppendHeader(array, v.Type, strconv.Itoa(i)), v.Data...)
		}
		array, _ = bsoncore.AppendArrayEnd(array, start)
		return array
	})
}

func value(t bson.Type, data []byte) bson.Value { return bson.Value{Type: t, Data: data} }
