package bson_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

func TestWalk(t *testing.T) {
	for _, c := range []struct {
		path, doc string
		want      []string // a value a visit: e marks an array's element, then the index; "-" is missing
	}{
		{"a", `{"a": 1}`, []string{"1"}},
		{"a", `{"b": 1}`, []string{"-"}},
		{"a.b", `{"a": {"b": 1}}`, []string{"1"}},
		{"a.b", `{"a": 1}`, []string{"-"}},
		{"a", `{"a": []}`, []string{"[]"}},
		{"a", `{"a": [1, [2]]}`, []string{"e1 0", "e[2] 1", "[1,[2]]"}},
		{"a.b", `{"a": [{"b": 1}, {"c": 2}, 3]}`, []string{"1 0", "- 1"}},
		{"a.b", `{"a": [1, 2]}`, nil},
		{"a.b", `{"a": []}`, nil},
		{"a.b", `{"a": [{"b": [7, 8]}]}`, []string{"e7 0", "e8 0", "[7,8] 0"}},
		{"a.b", `{"a": [[{"b": 1}]]}`, nil},
		{"a.1", `{"a": [5, 6]}`, []string{"6"}},
		{"a.2", `{"a": [5, 6]}`, nil},
		{"a.0", `{"a": {"0": 4}}`, []string{"4"}},
		{"a.0", `{"a": [[1, 2]]}`, []string{"[1,2]"}},
		{"a.00", `{"a": [5]}`, nil},
		{"a.0.b", `{"a": [{"b": 1}]}`, []string{"- 0", "1"}},
		{"a.0.b", `{"a": [{"0": {"b": 2}, "b": 1}]}`, []string{"2 0", "1"}},
		{"a.0.1", `{"a": [[5, 6]]}`, []string{"6"}},
		{"a.0.b", `{"a": [[{"b": 3}]]}`, []string{"3 0"}},
		{"a.0.b", `{"a": [{"b": [1, 2]}]}`, []string{"- 0", "e1 0", "e2 1", "[1,2]"}},
		{"", `{"": 1}`, []string{"1"}},
	} {
		var got []string
		bson.ParsePath(c.path).Walk(bsontest.Doc(t, c.doc), true, func(v bson.Value, ok, expanded bool, index int) bool {
			s := "-"
			if ok {
				s = v.String()
				if v.Type == bson.TypeInt32 {
					s = fmt.Sprint(v.Int32())
				} else if v.Type == bson.TypeArray {
					s = arrayText(v)
				}
			}
			if expanded {
				s = "e" + s
			}
			if index >= 0 {
				s += fmt.Sprintf(" %d", index)
			}
			got = append(got, s)
			return true
		})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s in %s: %q, want %q", c.path, c.doc, got, c.want)
		}
	}
}

// arrayText gives an array of int32 and arrays as text.
func arrayText(v bson.Value) string {
	s := "["
	it := bson.Elements(v.Data)
	for it.Next() {
		if len(s) > 1 {
			s += ","
		}
		if e := it.Value(); e.Type == bson.TypeArray {
			s += arrayText(e)
		} else {
			s += fmt.Sprint(e.Int32())
		}
	}
	return s + "]"
}

func TestWalkWithoutExpansionAndStop(t *testing.T) {
	doc := bsontest.Doc(t, `{"a": [{"b": [1, 2]}, {"b": 3}]}`)
	path := bson.ParsePath("a.b")
	visits := 0
	if !path.Walk(doc, false, func(_ bson.Value, _, expanded bool, _ int) bool {
		visits++
		return !expanded
	}) || visits != 2 {
		t.Errorf("%d visits of whole values, want 2", visits)
	}
	visits = 0
	if path.Walk(doc, true, func(bson.Value, bool, bool, int) bool { visits++; return false }) || visits != 1 {
		t.Errorf("%d visits after the first said stop", visits)
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		path, doc string
		ok, array bool
	}{
		{"a.b", `{"a": {"b": 1}}`, true, false},
		{"a.b", `{"a": {"b": null}}`, true, false},
		{"a.b", `{"a": {}}`, false, false},
		{"a.b", `{"a": 1}`, false, false},
		{"a.b", `{"a": [{"b": 1}]}`, false, true},
		{"a.b", `{"a": {"b": [1]}}`, true, true},
		{"a.0", `{"a": [1]}`, false, true},
	} {
		_, ok, array := bson.ParsePath(c.path).Lookup(bsontest.Doc(t, c.doc))
		if ok != c.ok || array != c.array {
			t.Errorf("%s in %s: ok %v, array %v", c.path, c.doc, ok, array)
		}
	}
}

func TestGet(t *testing.T) {
	doc := bsontest.Doc(t, `{"a": {"b": 1}, "ab": null, "": "x", "a\u00e4": [1], "a": 2}`)
	for key, want := range map[string]bson.Type{"a": bson.TypeDocument, "ab": bson.TypeNull, "": bson.TypeString, "aä": bson.TypeArray} {
		if v, ok := bson.Get(doc, key); !ok || v.Type != want {
			t.Errorf("%q: type %s, %v", key, v.Type, ok)
		}
	}
	for _, key := range []string{"b", "A", "abc", "a\x00"} {
		if v, ok := bson.Get(doc, key); ok {
			t.Errorf("%q is found: %s", key, v)
		}
	}
	// The bytes behind a key are no part of it.
	if v, ok := bson.Get(bsontest.Doc(t, `{"a": 65}`), "a\x00A\x00\x00"); ok {
		t.Errorf("a key with a zero byte is found: %s", v)
	}
}

// TestGetAgreesWithElements holds the two ways of reading a document against each other.
func TestGetAgreesWithElements(t *testing.T) {
	documents := bsontest.Documents(1)
	rapid.Check(t, func(t *rapid.T) {
		doc := documents.Draw(t, "document")
		seen := map[string]bool{}
		it := bson.Elements(doc)
		for it.Next() {
			key := string(it.Key())
			if v, ok := bson.Get(doc, key); !seen[key] && (!ok || !bytes.Equal(v.Data, it.Value().Data) || v.Type != it.Value().Type) {
				t.Fatalf("%q: %v, want %v", key, v, it.Value())
			}
			seen[key] = true
		}
	})
}
