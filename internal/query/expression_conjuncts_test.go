package query

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
)

// someValues are values of many types, as Extended JSON; those that begin with a bracket make paths go through arrays.
var someValues = []string{
	`1`, `2`, `{"$numberLong": "2"}`, `1.5`, `{"$numberDecimal": "2.0"}`, `NaN`, `"a"`, `"b"`, `null`, `true`, `false`,
	`{"$date": {"$numberLong": "0"}}`, `{"$date": {"$numberLong": "1000"}}`, `{"$timestamp": {"t": 1, "i": 1}}`, `{"$oid": "000000000000000000000001"}`,
	`{"$minKey": 1}`, `{"$maxKey": 1}`, `{"$regularExpression": {"pattern": "a", "options": ""}}`, `{"b": 2}`, `{"b": [1, 2]}`, `{}`,
	`[]`, `[1, 2]`, `[2]`, `[{"b": 1}, {"b": 2}]`, `[{"b": [1, 2]}]`, `[{"c": 1}]`, `[null]`, `[[2]]`, `{"b": {"$date": {"$numberLong": "1000"}}}`,
}

// few are a few values, so that predicates and documents made of them meet often.
type few []string

func someFew(t *rapid.T) few {
	return rapid.SliceOfN(rapid.SampledFrom(someValues), 2, 6).Draw(t, "few")
}

func (f few) value(t *rapid.T, label string) string {
	v := rapid.SampledFrom(f).Draw(t, label)
	if v == "NaN" {
		return `{"$numberDouble": "NaN"}`
	}
	return v
}

func (f few) comparison(t *rapid.T) string {
	path := rapid.SampledFrom([]string{`"$a"`, `"$a.b"`, `"$c"`}).Draw(t, "path")
	if rapid.IntRange(0, 4).Draw(t, "in") == 0 {
		return fmt.Sprintf(`{"$in": [%s, {"$literal": [%s, %s]}]}`, path, f.value(t, "x"), f.value(t, "y"))
	}
	op := rapid.SampledFrom([]string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}).Draw(t, "op")
	v := `{"$literal": ` + f.value(t, "v") + `}`
	if rapid.Bool().Draw(t, "flip") {
		return fmt.Sprintf(`{"%s": [%s, %s]}`, op, v, path)
	}
	return fmt.Sprintf(`{"%s": [%s, %s]}`, op, path, v)
}

func (f few) predicate(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return f.comparison(t)
	case 1:
		return fmt.Sprintf(`{"$or": [%s, %s]}`, f.comparison(t), f.comparison(t))
	case 2:
		return fmt.Sprintf(`{"$or": [{"$and": [%s, %s]}, %s]}`, f.comparison(t), f.comparison(t), f.comparison(t))
	}
	return fmt.Sprintf(`{"$and": [%s, %s, %s]}`, f.comparison(t), f.comparison(t), f.comparison(t))
}

// TestConjunctsAreImplied: a document for which an expression is true matches everything that the expression implies.
func TestConjunctsAreImplied(t *testing.T) {
	used := 0
	check := func(rt *rapid.T) {
		f := someFew(rt)
		source := f.predicate(rt)
		e, err := ParseExpression(value(t, source), Env{})
		if err != nil {
			rt.Fatal(source, err)
		}
		conjuncts := e.Conjuncts()
		for range 20 {
			doc := document(t, fmt.Sprintf(`{"a": %s, "c": %s}`, f.value(rt, "a"), f.value(rt, "c")))
			if rapid.IntRange(0, 5).Draw(rt, "missing") == 0 {
				doc = document(t, fmt.Sprintf(`{"c": %s}`, f.value(rt, "c")))
			}
			var s Scratch
			v, err := e.Eval(doc, &s)
			if err != nil {
				rt.Fatal(source, err)
			}
			if !Truth(v) {
				continue
			}
			for _, n := range conjuncts {
				used++
				ok, _, err := n.match(doc)
				if err != nil || !ok {
					rt.Fatalf("%s is true for %s, which does not match %T %+v (%v)", source, extJSON(doc), n, n, err)
				}
			}
		}
	}
	for range 10 {
		if rapid.Check(t, check); used > 0 {
			return
		}
	}
	t.Error("nothing was implied")
}

func TestConjuncts(t *testing.T) {
	for source, want := range map[string]string{
		`{"$eq": ["$a.b", 5]}`:                                  "[a.b 0 5]",
		`{"$eq": [{"$add": [2, 3]}, "$a"]}`:                     "[a 0 5]",
		`{"$lt": ["$a", 5]}`:                                    "",
		`{"$gt": ["$a", 5]}`:                                    "",
		`{"$and": [{"$gte": ["$a", 5]}, {"$gt": [9, "$a"]}]}`:   "[a 4 5] [a 1 9]",
		`{"$and": [{"$gte": ["$a", 5]}, {"$lt": ["$a", "x"]}]}`: "",
		`{"$and": [{"$gte": ["$a", 5]}, {"$lt": ["$b", 9]}]}`:   "",
		`{"$and": [{"$eq": ["$a", 1]}, {"$and": [{"$eq": ["$b", 2]}, {"$gt": ["$c", 1]}]}]}`: "[a 0 1] [b 0 2]",
		`{"$or": [{"$eq": ["$a", 1]}, {"$gt": ["$b", 2]}]}`:                                  "",
		`{"$not": [{"$eq": ["$a", 1]}]}`:                                                     "",
		`{"$eq": ["$a", "$b"]}`:                                                              "",
	} {
		e, err := ParseExpression(value(t, source), Env{})
		if err != nil {
			t.Fatal(source, err)
		}
		got := ""
		for _, n := range e.Conjuncts() {
			c, ok := n.(*Compare)
			if !ok {
				t.Fatalf("%s: %T", source, n)
			}
			if got != "" {
				got += " "
			}
			got += fmt.Sprintf("[%s %d %s]", c.Path, c.Op, valueText(c.Value))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
	e, err := ParseExpression(value(t, `{"$gte": ["$t", {"$date": {"$numberLong": "0"}}]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	or, ok := e.Conjuncts()[0].(*Or)
	if !ok || len(or.Of) != 2 || or.Of[0].(*Compare).Op != Gte || or.Of[1].(*Type).Types[0] != bson.TypeTimestamp {
		t.Errorf("a lower bound on a date: %+v", e.Conjuncts())
	}
}
