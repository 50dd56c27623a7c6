package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// TestPlansAgree: whatever the documents, the indexes and the query, the chosen plan, every hint and a full scan with a sort behind it
// give the same documents in the same order of the sort; counts and distinct values agree with them.
func TestPlansAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		db := memoryDB(t, nil)
		defer db.Close()
		w := newWorld(t, r, db)
		for range 12 {
			w.check(r, genQuery(r, w.hot))
		}
	})
}

// world is a table with its documents, held a second time outside.
type world struct {
	t     *testing.T
	table *Table
	docs  []bson.Document
	hot   hot
}

func newWorld(t *testing.T, r *rapid.T, db *DB) *world {
	if _, err := db.CreateTable(testName, nil); err != nil {
		t.Fatal(err)
	}
	var docs []bson.Document
	for i := range rapid.IntRange(1, 30).Draw(r, "documents") {
		docs = append(docs, docFrom(t, append(driver.D{{Key: "_id", Value: genID(r, i)}}, genFields(r)...)))
	}
	half := rapid.IntRange(0, len(docs)).Draw(r, "before indexes")
	w := &world{t: t, hot: genHot(r)}
	w.docs = insert(t, db, docs[:half]...)
	for range rapid.IntRange(0, 4).Draw(r, "indexes") {
		spec := docFrom(t, genIndex(r, w.hot))
		_, _, err := db.CreateIndexes(context.Background(), testName, []bson.Document{spec})
		if err != nil && !knownIndexError(err) {
			r.Fatalf("index %s: %v", spec, err)
		}
	}
	w.docs = append(w.docs, insert(t, db, docs[half:]...)...)
	w.table, _ = db.Table(testName)
	for _, ix := range w.table.Indexes() {
		r.Logf("index %s multikey %v", ix.Spec, ix.Multikey)
	}
	for _, d := range w.docs {
		r.Logf("document %s", d)
	}
	return w
}

func knownIndexError(err error) bool {
	for _, code := range []mongoerr.Code{mongoerr.DuplicateKey, mongoerr.CannotIndexParallelArrays, mongoerr.IndexOptionsConflict, mongoerr.IndexKeySpecsConflict,
		mongoerr.InvalidIndexSpecOption} {
		if mongoerr.Is(err, code) {
			return true
		}
	}
	return false
}

type querySpec struct {
	filter, sort driver.D
	skip, limit  int64
	distinct     string
}

func genQuery(r *rapid.T, h hot) querySpec {
	q := querySpec{filter: genFilter(r, h, 2), distinct: h.path(r)}
	if rapid.Bool().Draw(r, "sorted") {
		for _, p := range h.paths(r, 2) {
			q.sort = append(q.sort, driver.E{Key: p, Value: rapid.SampledFrom([]int32{1, -1}).Draw(r, "direction")})
		}
	}
	if rapid.Bool().Draw(r, "part") {
		q.skip = rapid.Int64Range(0, 5).Draw(r, "skip")
		q.limit = rapid.Int64Range(0, 8).Draw(r, "limit")
	}
	return q
}

func (w *world) check(r *rapid.T, spec querySpec) {
	f, err := query.ParseFilter(docFrom(w.t, spec.filter), query.Env{})
	if err != nil {
		r.Fatalf("filter %v: %v", spec.filter, err)
	}
	q := Query{Filter: f, Skip: spec.skip, Limit: spec.limit}
	r.Logf("filter %s sort %v skip %d limit %d", f.Raw(), spec.sort, q.Skip, q.Limit)
	if len(spec.sort) > 0 {
		q.Sort = sortOf(w.t, docFrom(w.t, spec.sort).String())
	}
	var want []bson.Document
	for _, d := range w.docs {
		ok, err := f.Match(d)
		if err != nil {
			r.Fatalf("match: %v", err)
		}
		if ok {
			want = append(want, d)
		}
	}
	keys, ok := sortKeys(q.Sort, want)
	if !ok {
		return // arrays side by side in a sort are an error, whichever the plan
	}
	slices.SortFunc(keys, bytes.Compare)
	w.compare(r, q, want, keys, "chosen", true)
	natural := q
	natural.Hint = bson.Value{Type: bson.TypeDocument, Data: docOf(w.t, `{"$natural": -1}`)}
	w.compare(r, natural, want, keys, "natural", true)
	for _, ix := range w.table.Indexes() {
		hinted := q
		hinted.Hint = stringValue(ix.Name)
		w.compare(r, hinted, want, keys, "hint "+ix.Name, !ix.Sparse && ix.Partial == nil)
	}
	w.distinct(r, q, want, spec.distinct)
}

func sortKeys(s *query.Sort, docs []bson.Document) ([][]byte, bool) {
	if s == nil {
		return nil, true
	}
	var keys [][]byte
	for _, d := range docs {
		k, err := s.AppendKey(nil, d)
		if err != nil {
			return nil, false
		}
		keys = append(keys, k)
	}
	return keys, true
}

// compare runs q and holds it against the matching documents and their sort keys in order. A sparse or partial index may be
// hinted to the effect that documents are missing.
func (w *world) compare(r *rapid.T, q Query, want []bson.Document, keys [][]byte, how string, complete bool) {
	got := all(w.t, w.table, q)
	fail := func(format string, args ...any) {
		c, err := w.table.open(&q)
		if err == nil {
			format += "\n" + c.x.plan.String()
			err = c.Close()
		}
		r.Fatalf("%s: "+format+" %v\ngot  %s\nwant %s", append([]any{how}, append(args, errors.Join(err), texts(got), texts(want))...)...)
	}
	expected := max(0, int64(len(want))-q.Skip)
	if q.Limit > 0 {
		expected = min(expected, q.Limit)
	}
	if complete && int64(len(got)) != expected {
		fail("%d documents instead of %d", len(got), expected)
	}
	seen := map[string]bool{}
	for _, d := range got {
		if !slices.ContainsFunc(want, func(o bson.Document) bool { return bytes.Equal(o, d) }) {
			fail("%s does not match", d)
		}
		if seen[string(d)] {
			fail("%s came twice", d)
		}
		seen[string(d)] = true
	}
	gotKeys, _ := sortKeys(q.Sort, got)
	for i, k := range gotKeys {
		if complete && !bytes.Equal(k, keys[int(q.Skip)+i]) {
			fail("document %d is out of order", i)
		}
	}
	n, err := w.table.Count(context.Background(), q)
	if err != nil {
		fail("count: %v", err)
	}
	if complete && n != expected {
		fail("count %d instead of %d", n, expected)
	}
}

func (w *world) distinct(r *rapid.T, q Query, want []bson.Document, path string) {
	expected := map[string]bool{}
	for _, d := range want {
		bson.ParsePath(path).Walk(d, false, func(v bson.Value, ok, _ bool, _ int) bool {
			values := []bson.Value{v}
			if v.Type == bson.TypeArray {
				values = nil
				for it := bson.Elements(v.Data); it.Next(); {
					values = append(values, it.Value())
				}
			}
			for _, v := range values {
				if ok {
					expected[string(bson.AppendKey(nil, v, false))] = true
				}
			}
			return true
		})
	}
	got := map[string]bool{}
	err := w.table.Distinct(context.Background(), bson.ParsePath(path), q, func(v bson.Value) error {
		k := string(bson.AppendKey(nil, v, false))
		if got[k] {
			return fmt.Errorf("%s comes twice", v)
		}
		got[k] = true
		return nil
	})
	if err != nil {
		r.Fatalf("distinct %s: %v", path, err)
	}
	if len(got) != len(expected) {
		r.Fatalf("distinct %s: %d values instead of %d", path, len(got), len(expected))
	}
	for k := range expected {
		if !got[k] {
			r.Fatalf("distinct %s: %x is missing", path, k)
		}
	}
}

func texts(docs []bson.Document) string {
	var out []string
	for _, d := range docs {
		out = append(out, d.String())
	}
	return strings.Join(out, "\n     ")
}
