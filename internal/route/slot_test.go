package route

import (
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

func TestSlotOfNumbers(t *testing.T) {
	h := Hash{Field: bson.ParsePath("uid"), Count: 64}
	for value, want := range map[string]int{
		`{"$numberInt": "0"}`:                       0,
		`{"$numberInt": "65"}`:                      1,
		`{"$numberLong": "65"}`:                     1,
		`{"$numberDouble": "65"}`:                   1,
		`{"$numberDecimal": "65"}`:                  1,
		`{"$numberDecimal": "6.5E+1"}`:              1,
		`{"$numberInt": "-1"}`:                      63,
		`{"$numberDouble": "-1"}`:                   63,
		`{"$numberDecimal": "-1.0"}`:                63,
		`{"$numberDouble": "-0"}`:                   0,
		`{"$numberLong": "-9223372036854775808"}`:   0,
		`{"$numberDouble": "-9223372036854775808"}`: 0,
		`{"$numberLong": "9007199254740993"}`:       1,
		`{"$numberDouble": "1152921504606847104"}`:  0,
	} {
		if got, err := h.Slot(bsontest.Value(t, value)); err != nil || got != want {
			t.Errorf("%s: slot %d, %v; want %d", value, got, err, want)
		}
	}
}

// Stored documents depend on these: a value that changes its slot is lost to its filters.
func TestSlotOfOtherValues(t *testing.T) {
	h := Hash{Field: bson.ParsePath("uid"), Count: 64}
	null, err := h.Slot(bson.Null)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []bson.Value{{}, {Type: bson.TypeUndefined}} {
		if got, err := h.Slot(v); err != nil || got != null {
			t.Errorf("type %#x: slot %d, %v; want null's %d", byte(v.Type), got, err, null)
		}
	}
	if _, err := h.Slot(bsontest.Value(t, `[1]`)); !mongoerr.Is(err, mongoerr.TypeMismatch) {
		t.Errorf("an array: %v, want TypeMismatch", err)
	}
	for v, want := range map[string]int{`"ORD"`: 5, `"ATL"`: 25, `null`: 24, `1.5`: 24, `true`: 41, `{"$oid": "3a62b4c80000000000000000"}`: 63} {
		if got, err := h.Slot(bsontest.Value(t, v)); err != nil || got != want {
			t.Errorf("%s: slot %d, %v; want %d", v, got, err, want)
		}
	}
}

// Values that compare equal share a slot, whatever their types.
func TestEqualValuesShareSlot(t *testing.T) {
	value := rapid.OneOf(bsontest.Values(2), rapid.Map(bsontest.Numbers(), bson.Number.Value))
	rapid.Check(t, func(t *rapid.T) {
		h := Hash{Field: bson.ParsePath("uid"), Count: rapid.IntRange(1, 300).Draw(t, "count")}
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		if a.Type == bson.TypeArray || b.Type == bson.TypeArray {
			return
		}
		i, errA := h.Slot(a)
		j, errB := h.Slot(b)
		if errA != nil || errB != nil || i < 0 || i >= h.Count || j < 0 || j >= h.Count {
			t.Fatalf("slots %d, %v and %d, %v of %d", i, errA, j, errB, h.Count)
		}
		if bson.Equal(a, b) && i != j {
			t.Fatalf("%v and %v are equal, their slots %d and %d are not", a, b, i, j)
		}
	})
}
