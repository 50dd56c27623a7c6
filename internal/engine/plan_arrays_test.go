package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"oxbow/internal/bson"
)

// TestArraysInPlans: each case is one that a plausible but wrong rule about bounds, sorts and arrays gets wrong.
func TestArraysInPlans(t *testing.T) {
	for name, c := range map[string]struct {
		index, filter, sort string
		docs                []string
		want                string
	}{
		"two elements satisfy two conditions inside $or": {
			`{"key": {"a": 1}, "name": "i"}`, `{"$or": [{"a": {"$gt": 5, "$lt": 3}}, {"a": 99}]}`, "",
			[]string{`{"_id": 1, "a": [1, 10]}`, `{"_id": 2, "a": 4}`}, "[1]",
		},
		"an array inside the element of $elemMatch": {
			`{"key": {"a.c.d": 1, "a.c.e": 1}, "name": "i"}`, `{"a": {"$elemMatch": {"c.d": 1, "c.e": 2}}}`, "",
			[]string{`{"_id": 1, "a": [{"c": [{"d": 1, "e": 9}, {"d": 8, "e": 2}]}]}`, `{"_id": 2, "a": [{"c": {"d": 1, "e": 3}}]}`}, "[1]",
		},
		"a field held to a value sorts by its least element": {
			`{"key": {"a": 1}, "name": "i"}`, `{"a": 5}`, `{"a": 1}`,
			[]string{`{"_id": 1, "a": 5}`, `{"_id": 2, "a": [1, 5]}`}, "[2 1]",
		},
		"a held field of the sort before a list": {
			`{"key": {"a": 1, "b": 1, "c": 1}, "name": "i"}`, `{"a": 1, "b": {"$in": [1, 2]}}`, `{"a": 1, "c": 1}`,
			[]string{`{"_id": 1, "a": 1, "b": 1, "c": 2}`, `{"_id": 2, "a": 1, "b": 2, "c": 1}`}, "[2 1]",
		},
		"an empty array sorts below null": {
			`{"key": {"a": 1}, "name": "i"}`, "", `{"a": 1}`,
			[]string{`{"_id": 1}`, `{"_id": 2, "a": []}`, `{"_id": 3, "a": {"$minKey": 1}}`}, "[3 2 1]",
		},
		"an array equals itself and what contains it": {
			`{"key": {"a": 1}, "name": "i"}`, `{"a": []}`, "",
			[]string{`{"_id": 1, "a": []}`, `{"_id": 2, "a": [[]]}`, `{"_id": 3, "a": [1]}`, `{"_id": 4}`}, "[1 2]",
		},
		"an element that is a document, whatever is in it": {
			`{"key": {"a": 1}, "name": "i"}`, `{"a": {"$elemMatch": {}}}`, "",
			[]string{`{"_id": 1, "a": 1}`, `{"_id": 2, "a": [1, {"b": 1}]}`, `{"_id": 3}`, `{"_id": 4, "a": [1]}`, `{"_id": 5, "a": {"b": 1}}`}, "[2]",
		},
		"an element of an element": {
			`{"key": {"a.b": 1}, "name": "i"}`, `{"a": {"$elemMatch": {"b": {"$elemMatch": {}}}}}`, "",
			[]string{`{"_id": 1, "a": [{"b": 1}]}`, `{"_id": 2, "a": [{"b": [{}]}]}`, `{"_id": 3, "a": [{"b": [1]}]}`}, "[2]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := tableOf(t, memoryDB(t, nil), []string{c.index}, c.docs)
			for _, hint := range []bson.Value{{}, stringValue("i")} {
				q := Query{Filter: filterOf(t, c.filter), Sort: sortOf(t, c.sort), Hint: hint}
				if got := fmt.Sprint(ids(all(t, table, q))); got != c.want {
					t.Errorf("hint %v: %s instead of %s", hint, got, c.want)
				}
			}
		})
	}
}

// TestCountFromKeys: where keys decide the filter no document is read, and a document with several keys counts once.
func TestCountFromKeys(t *testing.T) {
	table := tableOf(t, memoryDB(t, nil), []string{`{"key": {"a": 1, "b": 1}, "name": "i"}`}, []string{
		`{"_id": 1, "a": [1, 2], "b": 1}`, `{"_id": 2, "a": 2, "b": 1}`, `{"_id": 3, "a": 2, "b": 2}`, `{"_id": 4, "a": 3, "b": 1}`,
	})
	for _, c := range []struct {
		filter    string
		want      int64
		documents int64
	}{
		{`{"a": {"$gte": 1}}`, 4, 0},
		{`{"a": 2, "b": 1}`, 2, 0},
		{`{"a": {"$ne": 2}}`, 1, 3},
		{`{"a": {"$gt": 0}, "c": null}`, 4, 4},
	} {
		cursor, err := table.open(&Query{Filter: filterOf(t, c.filter)})
		if err != nil {
			t.Fatal(err)
		}
		n, err := cursor.count(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, documents := cursor.Examined(); n != c.want || documents > c.documents {
			t.Errorf("%s: %d, %d documents read; want %d, %d", c.filter, n, documents, c.want, c.documents)
		}
		if err := cursor.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDistinctSkips: an index gives each value once, in order, and passes over the other keys of a value.
func TestDistinctSkips(t *testing.T) {
	db := memoryDB(t, nil)
	table := numberedTable(t, db, 700)
	insert(t, db, docOf(t, `{"_id": "none"}`), docOf(t, `{"_id": "null", "a": null}`))
	for filter, want := range map[string]string{
		"":                          "[null 0 1 2 3 4 5 6]",
		`{"a": {"$gt": 2}}`:         "[3 4 5 6]",
		`{"a": {"$in": [6, 9, 1]}}`: "[1 6]",
	} {
		var got []string
		q := Query{Filter: filterOf(t, filter), distinct: "a"}
		err := table.Distinct(context.Background(), bson.ParsePath("a"), q, func(v bson.Value) error {
			got = append(got, valueText(v))
			return nil
		})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v instead of %s, %v", filter, got, want, err)
		}
		cursor, err := table.open(&q)
		if err != nil {
			t.Fatal(err)
		}
		d := distinct{path: bson.ParsePath("a"), yield: func(bson.Value) error { return nil }, x: cursor.x}
		if err := d.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if keys, _ := cursor.Examined(); keys > 10 {
			t.Errorf("%s: %d keys read", filter, keys)
		}
		if err := cursor.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExplain(t *testing.T) {
	table := numberedTable(t, memoryDB(t, nil), 70)
	for _, c := range []struct{ query, want string }{
		{`{"n": {"$gte": 10, "$lt": 20}} | skip 1 | limit 3`,
			`{stage: "LIMIT", limitAmount: 3, inputStage: {stage: "SKIP", skipAmount: 1, inputStage: {stage: "FETCH", inputStage: {stage: "IXSCAN", keyPattern: {n: 1}, ` +
				`indexName: "n_1", isMultiKey: false, isUnique: false, isSparse: false, isPartial: false, indexVersion: 2, direction: "forward", indexBounds: {n: ["[10, 20)"]}}}}}`},
		{`{"_id": 1}`, `{stage: "IDHACK"}`},
		{`{"b": 1} | sort {"b": -1} | limit 2`,
			`{stage: "LIMIT", limitAmount: 2, inputStage: {stage: "SORT", sortPattern: {b: -1}, memLimit: 104857600, limitAmount: 2, ` +
				`inputStage: {stage: "COLLSCAN", filter: {b: 1}, direction: "forward"}}}`},
		{`{"n": {"$gt": 3, "$lt": 2}}`, `{stage: "EOF"}`},
	} {
		q, err := queryOf(t, c.query)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := table.Explain(context.Background(), q, true)
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := bson.Get(doc, "winningPlan")
		got := documentText(plan.Data)
		if got = unquoted(got); got != unquoted(c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.query, got, c.want)
		}
		stats, _ := bson.Get(doc, "executionStats")
		returned, _ := bson.Get(stats.Data, "nReturned")
		if n := len(all(t, table, q)); returned.Int64() != int64(n) {
			t.Errorf("%s: nReturned %d instead of %d", c.query, returned.Int64(), n)
		}
	}
}

// unquoted takes out backslashes, which valueText puts before quotes inside strings.
func unquoted(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if r != '\\' {
			out = append(out, r)
		}
	}
	return string(out)
}

// TestDistinctYieldsAtOnce: the values of a descending index come one by one too, so that who takes them can stop before all are read.
func TestDistinctYieldsAtOnce(t *testing.T) {
	db := memoryDB(t, nil)
	table := tableOf(t, db, []string{`{"key": {"n": -1}, "name": "n_-1"}`}, nil)
	for i := range 500 {
		insert(t, db, docOf(t, fmt.Sprintf(`{"_id": %d, "n": %d}`, i, i)))
	}
	cursor := openCursor(t, table, Query{distinct: "n"})
	var got []string
	enough := errors.New("enough")
	d := distinct{path: bson.ParsePath("n"), x: cursor.x, yield: func(v bson.Value) error {
		if got = append(got, valueText(v)); len(got) == 3 {
			return enough
		}
		return nil
	}}
	if err := d.run(t.Context()); err != enough || fmt.Sprint(got) != "[499 498 497]" {
		t.Errorf("%v, %v", got, err)
	}
	if keys, _ := cursor.Examined(); keys > 3 {
		t.Errorf("%d keys read for 3 values", keys)
	}
}
