package query

import (
	"bytes"
	"strconv"
	"sync"
	"testing"

	"oxbow/internal/bson"
)

// testEnv is the environment of the tables: 2024-01-13T09:00:51.250Z.
var testEnv = Env{NowMillis: 1705136451250}

// TestUpdateTable applies updates to documents. The fields of a case are update, doc, want; filters (arrayFilters), filter and index for the
// positional $; "same" instead of want where nothing changes; or code and message.
func TestUpdateTable(t *testing.T) {
	for _, name := range []string{"update_field.txt", "update_array.txt", "update_path.txt", "update_positional.txt", "update_replace.txt", "update_pipeline.txt"} {
		for _, c := range readTable(t, name) {
			t.Run(name+"/"+c.title, func(t *testing.T) { runUpdate(t, c) })
		}
	}
}

func runUpdate(t *testing.T, c tableCase) {
	opts := UpdateOptions{Env: testEnv, ArrayFilters: documents(t, c.fields["filters"]), Filter: caseFilter(t, c), Multi: c.fields["multi"] != ""}
	u, err := ParseUpdate(value(t, c.fields["update"]), opts)
	var got []byte
	changed := false
	doc := document(t, c.fields["doc"])
	before := bytes.Clone(doc)
	if err == nil {
		got, changed, err = u.Apply([]byte("before"), doc, caseIndex(t, c, opts.Filter, doc))
	}
	if !bytes.Equal(doc, before) {
		t.Fatalf("line %d: the document itself has changed", c.line)
	}
	if checkError(t, c, err) {
		return
	}
	if _, same := c.fields["same"]; same {
		if changed || string(got) != "before" {
			t.Fatalf("line %d: changed to %s", c.line, extJSON(got))
		}
		return
	}
	if !changed {
		t.Fatalf("line %d: not changed", c.line)
	}
	checkWant(t, c, got)
}

// caseIndex is the case's index for the positional $, or what its filter matches.
func caseIndex(t *testing.T, c tableCase, filter *Filter, doc bson.Document) int {
	t.Helper()
	if text, ok := c.fields["index"]; ok {
		index, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	if filter == nil {
		return -1
	}
	ok, index, err := filter.MatchAt(doc)
	if err != nil || !ok {
		t.Fatalf("line %d: the filter does not match: %v", c.line, err)
	}
	return index
}

func BenchmarkUpdateSetInc(b *testing.B) {
	u, err := ParseUpdate(value(b, `{"$set": {"level": 4, "ok": false}, "$inc": {"count": 1}}`), UpdateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkUpdate(b, u)
}

func BenchmarkUpdateNewField(b *testing.B) {
	u, err := ParseUpdate(value(b, `{"$set": {"closed": 1, "state": "done"}}`), UpdateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkUpdate(b, u)
}

func BenchmarkUpdatePush(b *testing.B) {
	u, err := ParseUpdate(value(b, `{"$push": {"tags": "more"}}`), UpdateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkUpdate(b, u)
}

func benchmarkUpdate(b *testing.B, u *Update) {
	doc := logDocument(b)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		out, changed, err := u.Apply(dst[:0], doc, -1)
		if err != nil || !changed {
			b.Fatal(changed, err)
		}
		dst = out
	}
}

// One compiled update serves many at once; the race detector watches.
func TestUpdateConcurrently(t *testing.T) {
	u, err := ParseUpdate(value(t, `{"$inc": {"n": 1}, "$set": {"a.$[x].b": 1, "s.$": 2}, "$push": {"l": {"$each": [3, 1], "$sort": 1}}}`),
		UpdateOptions{ArrayFilters: documents(t, `[{"x.k": {"$gt": 1}}]`)})
	if err != nil {
		t.Fatal(err)
	}
	doc := document(t, `{"_id": 1, "n": 1, "a": [{"k": 1}, {"k": 2}], "s": [0, 0], "l": [2]}`)
	want := document(t, `{"_id": 1, "n": 2, "a": [{"k": 1}, {"k": 2, "b": 1}], "s": [0, 2], "l": [1, 2, 3]}`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				got, _, err := u.Apply(nil, doc, 1)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %v", extJSON(got), err)
					return
				}
			}
		})
	}
	all.Wait()
}
