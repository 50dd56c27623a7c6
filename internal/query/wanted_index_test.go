package query

import (
	"testing"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

func TestWantedIndexes(t *testing.T) {
	for _, test := range []struct{ filter, sort, want string }{
		{`{}`, ``, ``},
		{`{"flag": 1}`, ``, `[{key: {"flag": 1}, name: "flag_1"}]`},
		{`{"time": {"$lt": 5}, "flag": 1}`, `{"seen": -1}`, `[{key: {"flag": 1, "seen": -1, "time": 1}, name: "flag_1_seen_-1_time_1"}]`},
		{`{}`, `{"a": 1, "b": -1}`, `[{key: {"a": 1, "b": -1}, name: "a_1_b_-1"}]`},
		{`{"a": {"$gt": 1, "$lt": 5}, "b": {"$gt": 1}}`, ``, `[{key: {"a": 1}, name: "a_1"}]`},
		{`{"$and": [{"a": 1}, {"b.c": {"$in": [1, 2]}}]}`, ``, `[{key: {"a": 1, "b.c": 1}, name: "a_1_b.c_1"}]`},
		{`{"$or": [{"a": 1}, {"b": {"$gt": 2}}, {"a": 3}]}`, ``, `[{key: {"a": 1}, name: "a_1"}, {key: {"b": 1}, name: "b_1"}]`},
		{`{"$or": [{"a": 1}, {"b": 2}], "c": 3}`, ``, `[{key: {"c": 1}, name: "c_1"}]`},
		{`{"$or": [{"a": 1}, {"b": 2}]}`, `{"t": 1}`, `[{key: {"a": 1, "t": 1}, name: "a_1_t_1"}, {key: {"b": 1, "t": 1}, name: "b_1_t_1"}]`},
		{`{"a": {"$ne": 1}}`, ``, `[{key: {"a": 1}, name: "a_1"}]`},
		{`{"a": {"$ne": 1}, "b": 2}`, ``, `[{key: {"b": 1}, name: "b_1"}]`},
		{`{"tags": {"$elemMatch": {"k": "x", "v": {"$gt": 1}}}}`, ``, `[{key: {"tags.k": 1, "tags.v": 1}, name: "tags.k_1_tags.v_1"}]`},
		{`{"tags": {"$elemMatch": {"$gt": 1}}}`, ``, `[{key: {"tags": 1}, name: "tags_1"}]`},
		{`{"at": {"$near": [1, 2]}}`, ``, `[{key: {"at": "2dsphere"}, name: "at_2dsphere"}]`},
		{`{"a": {"b": 1}}`, ``, `[{key: {"a": 1}, name: "a_1"}]`},
		{`{"$where": "true"}`, ``, ``},
		{`{"$expr": {"$eq": ["$a", "$b"]}}`, ``, ``},
		{`{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}`, ``, `[{key: {"a": 1, "b": 1, "c": 1, "d": 1}, name: "a_1_b_1_c_1_d_1"}]`},
	} {
		var sort bson.Document
		if test.sort != "" {
			sort = bsontest.Doc(t, test.sort)
		}
		keys := WantedIndexes(bsontest.Doc(t, test.filter), sort)
		want := ""
		if test.want != "" {
			want = `db.getSiblingDB("im").runCommand({createIndexes: "msg", indexes: ` + test.want + `})`
		}
		got := ""
		if keys != nil {
			got = CreateIndexes("im", "msg", keys)
		}
		if got != want {
			t.Errorf("%s sorted by %s wants\n%s, not\n%s", test.filter, test.sort, got, want)
		}
	}
}

func TestShape(t *testing.T) {
	for filter, want := range map[string]string{
		`{}`:                                  `{}`,
		`{"flag": 1, "who": "ada"}`:           `{flag: ?, who: ?}`,
		`{"a": {"$gt": 1, "$in": [1, null]}}`: `{a: {$gt: ?, $in: ?}}`,
		`{"a": {"b": 1}}`:                     `{a: ?}`,
		`{"a": null}`:                         `{a: null}`,
		`{"a": {"$exists": false}}`:           `{a: {$exists: false}}`,
		`{"a": {"$exists": 1}}`:               `{a: {$exists: true}}`,
		`{"$or": [{"a": 1}, {"b": {"$elemMatch": {"c": 3}}}]}`:           `{$or: [{a: ?}, {b: {$elemMatch: {c: ?}}}]}`,
		`{"a": {"$regularExpression": {"pattern": "x", "options": ""}}}`: `{a: /?/}`,
		`{"a": {"$not": {"$gt": 4}}}`:                                    `{a: {$not: {$gt: ?}}}`,
		`{"a": [1, 2]}`:                                                  `{a: ?}`,
	} {
		if got := string(AppendShape(nil, bsontest.Doc(t, filter))); got != want {
			t.Errorf("%s has the shape %s, not %s", filter, got, want)
		}
	}
	if got := string(AppendShape(nil, nil)); got != "{}" {
		t.Errorf("no filter has the shape %s", got)
	}
}
