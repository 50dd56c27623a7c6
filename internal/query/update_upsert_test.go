package query

import (
	"testing"

	"oxbow/internal/bson"
)

func TestUpsertTable(t *testing.T) {
	for _, c := range readTable(t, "upsert.txt") {
		t.Run(c.title, func(t *testing.T) {
			u, err := ParseUpdate(value(t, c.fields["update"]), UpdateOptions{Env: testEnv, Filter: caseFilter(t, c)})
			var got []byte
			if err == nil {
				got, err = u.Upsert([]byte("before"), [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
			}
			if checkError(t, c, err) {
				return
			}
			checkWant(t, c, got)
		})
	}
}

// Touches of updates whose values are known.
func TestTouchesConstants(t *testing.T) {
	for _, c := range []struct {
		update, path string
		touches      bool
		constant     string // Extended JSON; "missing"; "" if not known
	}{
		{`{"$set": {"a": 5}}`, "a", true, `5`},
		{`{"$set": {"a": 5}}`, "b", false, ``},
		{`{"$set": {"a": 5}}`, "ab", false, ``},
		{`{"$set": {"a": {"b": 5}}}`, "a.b", true, `5`},
		{`{"$set": {"a": {"b": 5}}}`, "a.c", true, `missing`},
		{`{"$set": {"a": [1]}}`, "a.b", true, ``},
		{`{"$set": {"a.b": 5}}`, "a.b", true, `5`},
		{`{"$set": {"a.b": 5}}`, "a", true, ``},
		{`{"$set": {"a.$[].b": 5}}`, "a.b", true, ``},
		{`{"$set": {"a.$.b": 5}}`, "a.b", true, ``},
		{`{"$inc": {"a": 5}}`, "a", true, ``},
		{`{"$setOnInsert": {"a": 5}}`, "a", false, ``},
		{`{"$unset": {"a": 5}}`, "a", true, `missing`},
		{`{"$unset": {"a.b": 5}}`, "a.b", true, ``},
		{`{"$rename": {"a": "b"}}`, "a", true, `missing`},
		{`{"$rename": {"a": "b"}}`, "b", true, ``},
		{`{"$currentDate": {"a": true}}`, "a", true, `{"$date": "2024-01-13T09:00:51.25Z"}`},
		{`{"$set": {"_id": 5}}`, "_id", false, ``},
		{`{"a": 5}`, "a", true, `5`},
		{`{"a": 5}`, "b", true, `missing`},
		{`{"a": 5}`, "_id", false, ``},
		{`[{"$set": {"a": 5}}]`, "a", true, `5`},
		{`[{"$set": {"a": "$b"}}]`, "a", true, ``},
		{`[{"$set": {"a": 5}}]`, "b", false, ``},
		{`[{"$set": {"a.b": 5}}]`, "a.b", true, ``},
		{`[{"$set": {"a": 5}}, {"$set": {"b": 6}}]`, "a", true, `5`},
		{`[{"$set": {"a": 5}}, {"$unset": "a"}]`, "a", true, `missing`},
		{`[{"$project": {"b": 1}}]`, "a", true, `missing`},
		{`[{"$project": {"a": 1}}]`, "a", false, ``},
		{`[{"$replaceWith": "$b"}]`, "a", true, ``},
	} {
		u, err := ParseUpdate(value(t, c.update), UpdateOptions{Env: testEnv})
		if err != nil {
			t.Fatal(err)
		}
		touches, v, constant := u.Touches(bson.ParsePath(c.path))
		if touches != c.touches || constant != (c.constant != "") {
			t.Errorf("%s on %s: touches %v, constant %v", c.update, c.path, touches, constant)
			continue
		}
		want := bson.Value{}
		if c.constant != "" && c.constant != "missing" {
			want = value(t, c.constant)
		}
		if constant && !sameValue(v, want) {
			t.Errorf("%s on %s: %s", c.update, c.path, valueText(v))
		}
	}
}

// What a look at an update's bytes tells of the paths that it leaves alone.
func TestSurelyLeaves(t *testing.T) {
	for _, c := range []struct {
		update, path string
		told         bool
	}{
		{`{"$set": {"a": 5}, "$inc": {"c.d": 1}}`, "b", true},
		{`{"$set": {"a": 5}}`, "ab", true},
		{`{"$set": {"ab": 5}}`, "a.b", true},
		{`{"$push": {"x.$[].a": 5}}`, "a", true},
		{`{"$set": {"b": 5}, "$inc": {"a": 1}}`, "a", false},
		{`{"$set": {"a.b": 5}}`, "a", false},
		{`{"$set": {"a.c": 5}}`, "a.b", false},
		{`{"$setOnInsert": {"a": 5}}`, "a", false},
		{`{"$rename": {"b": "a"}}`, "a", false},
		{`{"$rename": {"a": "b"}}`, "c", false},
		{`{"$set": {"$a": 5}}`, "c", false},
		{`{"$set": {"": 5}}`, "c", false},
		{`{"$set": 5}`, "c", false},
		{`{"$nothing": {"a": 5}}`, "c", false},
		{`{"b": 5}`, "a", false},
		{`{}`, "a", false},
		{`[{"$set": {"b": 5}}]`, "a", false},
	} {
		if told := SurelyLeaves(value(t, c.update), bson.ParsePath(c.path)); told != c.told {
			t.Errorf("%s on %s: %v", c.update, c.path, told)
		}
	}
}
