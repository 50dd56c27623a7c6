package bson_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

// checkKeys holds what AppendKey promises against two values.
func checkKeys(t interface{ Fatalf(string, ...any) }, a, b bson.Value) {
	want := bson.Compare(a, b)
	if back := bson.Compare(b, a); back != -want {
		t.Fatalf("Compare(a, b) is %d, Compare(b, a) is %d\na %v\nb %v", want, back, a, b)
	}
	for _, desc := range []bool{false, true} {
		prefix := []byte{1, 2, 3}
		x, y := bson.AppendKey(prefix, a, desc)[3:], bson.AppendKey(prefix, b, desc)[3:]
		got := bytes.Compare(x, y)
		if desc {
			got = -got
		}
		if got != want {
			t.Fatalf("Compare is %d, the keys (desc %v) say %d\na %v %x\nb %v %x", want, desc, got, a, x, b, y)
		}
		if got != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Fatalf("one key is the other's prefix\na %v %x\nb %v %x", a, x, b, y)
		}
		if n := bson.KeyLen(slices.Concat(x, y), desc); n != len(x) {
			t.Fatalf("KeyLen is %d, the key has %d bytes: %v %x", n, len(x), a, x)
		}
		if low, high := bson.ClassKeys(a.Type, desc); x[0] < low || x[0] >= high {
			t.Fatalf("the first byte of %x is not in [%x, %x) of its class", x, low, high)
		}
		if len(x) > 0 && bson.KeyLen(x[:len(x)-1], desc) != 0 {
			t.Fatalf("KeyLen takes a key cut short: %x", x)
		}
	}
}

func TestKeyOrderIsCompareOrder(t *testing.T) {
	values := bsontest.Values(2)
	rapid.Check(t, func(t *rapid.T) { checkKeys(t, values.Draw(t, "a"), values.Draw(t, "b")) })
}

func TestKeyOrderOfNumbers(t *testing.T) {
	numbers := bsontest.Numbers()
	rapid.Check(t, func(t *rapid.T) { checkKeys(t, numbers.Draw(t, "a").Value(), numbers.Draw(t, "b").Value()) })
}

func TestKeyOrderOfDocuments(t *testing.T) {
	documents := bsontest.Documents(2)
	rapid.Check(t, func(t *rapid.T) {
		a := bson.Value{Type: bson.TypeDocument, Data: documents.Draw(t, "a")}
		b := bson.Value{Type: bson.TypeDocument, Data: documents.Draw(t, "b")}
		checkKeys(t, a, b)
	})
}
