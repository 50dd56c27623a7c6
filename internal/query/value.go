package query

import (
	"encoding/binary"
	"fmt"
	"math"

	"oxbow/internal/bson"
)

// intOf reads an int32 or int64, or the milliseconds of a date.
func intOf(v bson.Value) int64 {
	if v.Type == bson.TypeInt32 {
		return int64(int32(binary.LittleEndian.Uint32(v.Data)))
	}
	return int64(binary.LittleEndian.Uint64(v.Data))
}

func doubleOf(v bson.Value) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(v.Data)) }

// floatOf returns the double nearest to a number of any type.
func floatOf(v bson.Value) float64 {
	switch v.Type {
	case bson.TypeDouble:
		return doubleOf(v)
	case bson.TypeInt32, bson.TypeInt64:
		return float64(intOf(v))
	}
	n, _ := bson.NumberOf(v)
	return n.Float64()
}

// whole32 returns a number as an integer of 32 bits, and false if it is none.
func whole32(v bson.Value) (int, bool) {
	i, ok := wholeNumber(v)
	return int(i), ok && i == int64(int32(i))
}

// bytesOf returns the bytes of a string, symbol or code value without the final zero.
func bytesOf(v bson.Value) []byte { return v.Data[4 : len(v.Data)-1] }

func textOf(v bson.Value) string { return string(bytesOf(v)) }

// nullish reports whether v is null, undefined or missing.
func nullish(v bson.Value) bool {
	return v.Type == bson.TypeNull || v.Type == 0 || v.Type == bson.TypeUndefined
}

// compareValues is bson.Compare for values that may be missing: missing is less than null and all above it, and greater than MinKey.
func compareValues(a, b bson.Value) int {
	if a.Type == b.Type {
		switch a.Type {
		case bson.TypeInt32, bson.TypeInt64, bson.TypeDateTime:
			return order(intOf(a), intOf(b))
		case 0:
			return 0
		}
	}
	switch {
	case a.Type == 0:
		return compareMissing(b)
	case b.Type == 0:
		return -compareMissing(a)
	}
	return bson.Compare(a, b)
}

func compareMissing(b bson.Value) int {
	switch b.Type {
	case 0:
		return 0
	case bson.TypeMinKey:
		return 1
	}
	return -1
}

func order(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// maxShown bounds a value's text in an error message, in bytes.
const maxShown = 200

// show gives a value as text for an error message.
func show(v bson.Value) string {
	if text := valueText(v); len(text) <= maxShown {
		return text
	} else {
		return text[:maxShown] + "..."
	}
}

// formatDouble gives a double as MongoDB converts it to a string: at most 16 significant digits.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		if f < 0 {
			return "-Infinity"
		}
		return "Infinity"
	}
	return fmt.Sprintf("%.16g", f)
}
