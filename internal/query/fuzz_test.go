package query

import (
	"testing"

	"oxbow/internal/bson"
)

// seedTables adds the documents that cases of the tables hold under two names to a fuzzer's corpus.
func seedTables(f *testing.F, add func(spec, doc bson.Value), spec string, names ...string) {
	t := &testing.T{}
	for _, name := range names {
		for _, c := range readTable(t, name) {
			doc, ok := c.fields["doc"]
			if ok {
				add(value(f, c.fields[spec]), value(f, doc))
			}
		}
	}
}

// Arbitrary bytes as an update and as a document: no panic, and what comes out of valid documents is valid.
func FuzzUpdate(f *testing.F) {
	add := func(u, doc bson.Value) { f.Add(u.Type == bson.TypeArray, u.Data, []byte(doc.Data), -1) }
	seedTables(f, add, "update", "update_field.txt", "update_array.txt", "update_path.txt", "update_positional.txt", "update_replace.txt", "update_pipeline.txt")
	f.Fuzz(func(t *testing.T, pipeline bool, u, doc []byte, index int) {
		if len(u)+len(doc) > 4<<10 {
			return
		}
		kind := bson.TypeDocument
		if pipeline {
			kind = bson.TypeArray
		}
		valid := bson.Validate(u, bson.MaxDepth) == nil && bson.Validate(doc, bson.MaxDepth) == nil
		if !valid {
			return
		}
		update, err := ParseUpdate(bson.Value{Type: kind, Data: u}, UpdateOptions{Env: testEnv})
		if err != nil {
			return
		}
		out, changed, err := update.Apply(nil, doc, index)
		if err == nil && changed {
			checkOutput(t, out)
		}
		path := bson.ParsePath("a.b")
		if touches, _, _ := update.Touches(path); touches && SurelyLeaves(bson.Value{Type: kind, Data: u}, path) {
			t.Errorf("an update touches %s, and at a look it does not", path)
		}
		if out, err = update.Upsert(nil, [12]byte{1}); err == nil {
			checkOutput(t, out)
		}
	})
}

// Arbitrary bytes as a projection and as a document.
func FuzzProjection(f *testing.F) {
	add := func(spec, doc bson.Value) { f.Add(spec.Type == bson.TypeArray, spec.Data, []byte(doc.Data)) }
	seedTables(f, add, "spec", "projection.txt", "projection_stage.txt")
	filter, err := ParseFilter(document(f, `{"a": {"$gt": 1}, "a.n": {"$exists": true}}`), testEnv)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stage bool, spec, doc []byte) {
		if len(spec)+len(doc) > 4<<10 || bson.Validate(spec, bson.MaxDepth) != nil || bson.Validate(doc, bson.MaxDepth) != nil {
			return
		}
		p, err := ParseProjection(spec, filter, testEnv)
		if stage {
			p, err = parseAddFields("$set", spec, testEnv)
		}
		if err != nil {
			return
		}
		p.Fields()
		if out, err := p.Apply(nil, doc); err == nil {
			checkOutput(t, out)
		}
	})
}

// Arbitrary bytes as a sort and as a document.
func FuzzSortKey(f *testing.F) {
	for _, c := range readTable(&testing.T{}, "sort.txt") {
		for _, doc := range documents(f, c.fields["docs"]) {
			f.Add([]byte(document(f, c.fields["sort"])), []byte(doc))
		}
	}
	f.Fuzz(func(t *testing.T, spec, doc []byte) {
		if len(doc) > 4<<10 || bson.Validate(spec, bson.MaxDepth) != nil || bson.Validate(doc, bson.MaxDepth) != nil {
			return
		}
		s, _, err := ParseSort(spec)
		if err != nil {
			return
		}
		key, err := s.AppendKey(nil, doc)
		if err != nil {
			return
		}
		for _, k := range s.Keys {
			n := bson.KeyLen(key, k.Desc)
			if n == 0 {
				t.Fatalf("no key in %x", key)
			}
			key = key[n:]
		}
		if len(key) > 0 {
			t.Fatalf("%x is left", key)
		}
	})
}

// checkOutput demands a document. Projections may nest more deeply than what can be stored.
func checkOutput(t *testing.T, out []byte) {
	t.Helper()
	if err := bson.Validate(out, 4*bson.MaxDepth); err != nil {
		t.Fatal(err)
	}
}
