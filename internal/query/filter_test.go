package query

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

func TestFilters(t *testing.T) {
	for _, c := range readTable(t, "filter.txt") {
		t.Run(c.title, func(t *testing.T) {
			f, err := ParseFilter(document(t, c.fields["filter"]), Env{})
			if err != nil {
				t.Fatalf("line %d: %v", c.line, err)
			}
			for field, want := range map[string]bool{"match": true, "miss": false} {
				for _, doc := range documents(t, c.fields[field]) {
					ok, err := f.Match(doc)
					if err != nil || ok != want {
						t.Errorf("line %d: %s on %s: %v, %v", c.line, c.fields["filter"], extJSON(doc), ok, err)
					}
				}
			}
		})
	}
}

func TestFilterErrors(t *testing.T) {
	for _, c := range readTable(t, "filter_error.txt") {
		_, err := ParseFilter(document(t, c.fields["filter"]), Env{})
		var e *mongoerr.Error
		if !errors.As(err, &e) {
			t.Errorf("line %d: %s: %v", c.line, c.fields["filter"], err)
			continue
		}
		want := c.fields["error"]
		if got := e.Code.String() + ": " + e.Message; got != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)) {
			t.Errorf("line %d: %s: %q, want %q", c.line, c.fields["filter"], got, want)
		}
	}
}

func TestMatchAt(t *testing.T) {
	for _, c := range []struct {
		filter, doc string
		want        int
	}{
		{`{"a": 5}`, `{"a": [4, 5]}`, 1},
		{`{"a": 5}`, `{"a": 5}`, -1},
		{`{"a": [4, 5]}`, `{"a": [4, 5]}`, -1},
		{`{"a.b": 5}`, `{"a": [{"b": 4}, {"b": [3, 5]}]}`, 1},
		{`{"a.1": 5}`, `{"a": [4, 5]}`, -1},
		{`{"a.0.b": 5}`, `{"a": [{"b": [3, 5]}]}`, 1},
		{`{"a": 4, "b": 7}`, `{"a": [4], "b": [6, 7]}`, 1},
		{`{"b": 7, "a": 4}`, `{"a": [4], "b": [6, 7]}`, 0},
		{`{"a": 5, "c": 1}`, `{"a": [4, 5], "c": 1}`, 1},
		{`{"a": {"$elemMatch": {"x": 2}}}`, `{"a": [{"x": 1}, {"x": [0, 0, 2]}]}`, 1},
		{`{"a": {"$elemMatch": {"$gt": 5}}}`, `{"a": [1, 6]}`, 1},
		{`{"a.b": {"$elemMatch": {"$gt": 5}}}`, `{"a": [{"b": [1]}, {"b": [1, 2, 6]}]}`, 1},
		{`{"$or": [{"a": 9}, {"a": 5}]}`, `{"a": [4, 5]}`, 1},
		{`{"a": {"$ne": 5}}`, `{"a": [4]}`, -1},
		{`{"a": {"$in": [5, 6]}}`, `{"a": [4, 6]}`, 1},
		{`{}`, `{"a": [4]}`, -1},
	} {
		f, err := ParseFilter(document(t, c.filter), Env{})
		if err != nil {
			t.Fatal(err)
		}
		if ok, at, err := f.MatchAt(document(t, c.doc)); !ok || at != c.want || err != nil {
			t.Errorf("%s on %s: %v at %d, %v; want %d", c.filter, c.doc, ok, at, err, c.want)
		}
	}
}

// TestZeroFilterMatches holds what Filter's comment says of its zero value.
func TestZeroFilterMatches(t *testing.T) {
	if ok, at, err := new(Filter).MatchAt(document(t, `{"a": 1}`)); !ok || at != -1 || err != nil {
		t.Errorf("%v at %d, %v", ok, at, err)
	}
}

func TestRegexPrefix(t *testing.T) {
	for _, c := range []struct{ pattern, options, want string }{
		{"^abc", "", "abc"}, {"^ab+c", "", "a"}, {"^ab?c", "", "a"}, {"^abc$", "", "abc"}, {`\Aab`, "", "ab"},
		{`^a\.b`, "", "a.b"}, {`^\Qa.b\E`, "", "a.b"}, {"^äb", "", "äb"}, {"^ab(c|d)", "", "ab"}, {"^abc|^abd", "", ""},
		{"^ a", "x", "a"}, {"^a", "s", "a"},
		{"abc", "", ""}, {"^abc", "i", ""}, {"^abc", "m", ""}, {"^(?i)abc", "", ""}, {"^a|b", "", ""}, {"^", "", ""}, {"^(?=a)ab", "", ""},
	} {
		r, err := NewRegex(bson.ParsePath("a"), c.pattern, c.options)
		if err != nil {
			t.Errorf("/%s/%s: %v", c.pattern, c.options, err)
			continue
		}
		if r.Prefix != c.want {
			t.Errorf("/%s/%s: prefix %q, want %q", c.pattern, c.options, r.Prefix, c.want)
		}
	}
}

func TestBacktrackingEnds(t *testing.T) {
	f, err := ParseFilter(document(t, `{"a": {"$regex": "^(?=(a+)+$)\\1b"}}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 64) + "!"
	if ok, err := f.Match(document(t, `{"a": "`+text+`"}`)); ok || !mongoerr.Is(err, mongoerr.OperationFailed) {
		t.Errorf("%v, %v; want an error", ok, err)
	}
}

// parse compiles a filter of one field and one operator.
func parse(t *rapid.T, operator string, v bson.Value) *Filter {
	operand := wrapValue(nil, operator, v)
	doc := wrapValue(nil, "a", bson.Value{Type: bson.TypeDocument, Data: operand})
	f, err := ParseFilter(doc, Env{})
	if err != nil {
		t.Fatalf("%s: %v", extJSON(doc), err)
	}
	return f
}

func matches(t *rapid.T, f *Filter, doc bson.Document) bool {
	ok, err := f.Match(doc)
	if err != nil {
		t.Fatalf("%s on %s: %v", extJSON(f.Raw()), extJSON(doc), err)
	}
	return ok
}

// comparable reports whether a value may be an operand of $eq.
func comparable(v bson.Value) bool { return v.Type != bson.TypeUndefined }

func TestEveryValueEqualsItself(t *testing.T) {
	values := bsontest.Values(2).Filter(comparable)
	rapid.Check(t, func(t *rapid.T) {
		v := values.Draw(t, "value")
		doc := wrapValue(nil, "a", v)
		for _, operator := range []string{"$eq", "$lte", "$gte"} {
			if v.Type == bson.TypeRegex && operator != "$eq" {
				continue
			}
			if !matches(t, parse(t, operator, v), doc) {
				t.Fatalf("%s does not match %s", operator, extJSON(doc))
			}
		}
	})
}

// TestNegations: $ne, $nin and $not are the complements of $eq, $in and what they negate.
func TestNegations(t *testing.T) {
	values, documents := bsontest.Values(1).Filter(comparable), bsontest.Documents(2)
	rapid.Check(t, func(t *rapid.T) {
		v, doc := values.Draw(t, "operand"), documents.Draw(t, "document")
		if v.Type == bson.TypeRegex || isOperatorDocument(v, false) {
			return
		}
		list := bson.Value{Type: bson.TypeArray, Data: wrapValue(nil, "0", v)}
		for operator, opposite := range map[string]string{"$eq": "$ne", "$in": "$nin"} {
			operand := v
			if operator == "$in" {
				operand = list
			}
			if matches(t, parse(t, operator, operand), doc) == matches(t, parse(t, opposite, operand), doc) {
				t.Fatalf("%s and %s agree on %s", operator, opposite, extJSON(doc))
			}
		}
		for _, operator := range []string{"$eq", "$lt", "$gt", "$lte", "$gte"} {
			inner := bson.Value{Type: bson.TypeDocument, Data: wrapValue(nil, operator, v)}
			if matches(t, parse(t, operator, v), doc) == matches(t, parse(t, "$not", inner), doc) {
				t.Fatalf("%s and its $not agree on %s", operator, extJSON(doc))
			}
		}
	})
}

// TestInIsAnyEquality: $in matches where one of its values is equal.
func TestInIsAnyEquality(t *testing.T) {
	values, documents := rapid.SliceOfN(bsontest.Values(1).Filter(comparable), 0, 5), bsontest.Documents(2)
	rapid.Check(t, func(t *rapid.T) {
		list, doc := values.Draw(t, "values"), documents.Draw(t, "document")
		any := false
		array := begin(nil)
		for i, v := range list {
			array = append(appendIndexedHeader(array, v.Type, i), v.Data...)
			if v.Type == bson.TypeRegex { // in $in it is a pattern, and equals itself too
				inner := wrapValue(nil, "a", v)
				f, err := ParseFilter(inner, Env{})
				if err != nil {
					t.Fatal(err)
				}
				any = any || matches(t, f, doc)
				continue
			}
			any = any || matches(t, parse(t, "$eq", v), doc)
		}
		array = finish(array, 0)
		if got := matches(t, parse(t, "$in", bson.Value{Type: bson.TypeArray, Data: array}), doc); got != any {
			t.Fatalf("$in: %v, one of $eq: %v, on %s", got, any, extJSON(doc))
		}
	})
}

// TestComparisonsAgreeWithOrder: within a class a comparison is the order of whole values, outside of arrays.
func TestComparisonsAgreeWithOrder(t *testing.T) {
	values := bsontest.Values(1).Filter(comparable)
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "value"), values.Draw(t, "operand")
		if a.Type == bson.TypeArray || b.Type == bson.TypeRegex || b.Type == bson.TypeMinKey || b.Type == bson.TypeMaxKey {
			return
		}
		doc := wrapValue(nil, "a", a)
		lt, lte := matches(t, parse(t, "$lt", b), doc), matches(t, parse(t, "$lte", b), doc)
		gt, gte := matches(t, parse(t, "$gt", b), doc), matches(t, parse(t, "$gte", b), doc)
		if bson.Class(a.Type) != bson.Class(b.Type) {
			if lt || lte || gt || gte {
				t.Fatalf("a comparison crosses types: %s", extJSON(doc))
			}
			return
		}
		c := bson.Compare(a, b)
		if n, ok := bson.NumberOf(a); ok {
			if m, _ := bson.NumberOf(b); n.IsNaN() != m.IsNaN() {
				if lt || lte || gt || gte {
					t.Fatalf("a number is ordered against NaN: %s", extJSON(doc))
				}
				return
			}
		}
		if lt != (c < 0) || lte != (c <= 0) || gt != (c > 0) || gte != (c >= 0) {
			t.Fatalf("Compare %d, $lt %v, $lte %v, $gt %v, $gte %v", c, lt, lte, gt, gte)
		}
	})
}

// FuzzFilter parses arbitrary bytes as a filter and applies it to others.
func FuzzFilter(f *testing.F) {
	for _, name := range []string{"filter.txt", "filter_error.txt"} {
		for _, c := range readFilters(f, name) {
			f.Add([]byte(document(f, c)), []byte(document(f, `{"a": [1, {"b": "x"}, null]}`)))
		}
	}
	f.Fuzz(func(t *testing.T, filter, doc []byte) {
		if bson.Validate(doc, bson.MaxDepth) != nil {
			return
		}
		p, err := ParseFilter(filter, Env{})
		if err != nil {
			var e *mongoerr.Error
			if !errors.As(err, &e) {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		first, at, err := p.MatchAt(doc)
		again, later, _ := p.MatchAt(doc)
		if err == nil && (first != again || at != later || !first && at != -1) {
			t.Fatalf("%v at %d, then %v at %d", first, at, again, later)
		}
	})
}

// readFilters returns the filters of a table.
func readFilters(f *testing.F, name string) []string {
	var filters []string
	for _, c := range readTable(f, name) {
		filters = append(filters, c.fields["filter"])
	}
	return filters
}

func BenchmarkMatch(b *testing.B) {
	doc := document(b, `{"_id": {"$oid": "64f1a2b3c4d5e6f708192a3b"}, "time": 1496620800, "dev": {"$numberLong": "7205759403792793601"},
		"host": "web-17.example", "level": 3, "msg": "request served in 12 ms", "tags": ["a", "b", "c"], "at": {"lat": 48.2, "lon": 16.37}}`)
	for _, c := range []struct{ name, filter string }{
		{"equality", `{"dev": {"$numberLong": "7205759403792793601"}}`},
		{"range", `{"time": {"$gte": 1496620000, "$lt": 1496630000}, "level": {"$lte": 3}}`},
		{"in", `{"host": {"$in": ["web-15.example", "web-16.example", "web-17.example", "web-18.example"]}}`},
		{"array", `{"tags": "c"}`},
		{"nested", `{"at.lon": {"$gt": 16}}`},
		{"regex", `{"msg": {"$regex": "^request .* ms$"}}`},
		{"elemMatch", `{"tags": {"$elemMatch": {"$gt": "b", "$lt": "d"}}}`},
		{"not", `{"level": {"$ne": 4}, "gone": {"$exists": false}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := ParseFilter(document(b, c.filter), Env{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := f.Match(doc); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
