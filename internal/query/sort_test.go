package query

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func TestSortTable(t *testing.T) {
	for _, c := range readTable(t, "sort.txt") {
		t.Run(c.title, func(t *testing.T) {
			s, _, err := ParseSort(document(t, c.fields["sort"]))
			var got []bson.Document
			if err == nil {
				got, err = sorted(s, documents(t, c.fields["docs"]), 0)
			}
			if checkError(t, c, err) {
				return
			}
			want := documents(t, c.fields["want"])
			if !slices.EqualFunc(got, want, func(a, b bson.Document) bool { return bytes.Equal(a, b) }) {
				for _, doc := range got {
					t.Log(extJSON(doc))
				}
				t.Fatalf("sort.txt:%d: another order than wanted", c.line)
			}
		})
	}
}

// checkError compares an error with the case's "code" and "message", and reports whether the case wants one.
func checkError(t *testing.T, c tableCase, err error) bool {
	t.Helper()
	want, wanted := c.fields["code"]
	if !wanted {
		if err != nil {
			t.Fatalf("line %d: %v", c.line, err)
		}
		return false
	}
	if err == nil {
		t.Fatalf("line %d: no error, want %s", c.line, want)
	}
	e := mongoerr.From(err)
	if strconv.Itoa(int(e.Code)) != want {
		t.Fatalf("line %d: error %d %q, want %s", c.line, e.Code, e.Message, want)
	}
	if message, ok := c.fields["message"]; ok && message != e.Message {
		t.Fatalf("line %d: message %q,\nwant %q", c.line, e.Message, message)
	}
	return true
}

func sorted(s *Sort, docs []bson.Document, limit int) ([]bson.Document, error) {
	sorter := NewSorter(s, limit, 1<<20, nil)
	for _, doc := range docs {
		if err := sorter.Add(doc); err != nil {
			return nil, err
		}
	}
	return sorter.Sorted(), nil
}

func TestNaturalSort(t *testing.T) {
	for text, want := range map[string]int{`{"$natural": 1}`: 1, `{"$natural": -1}`: -1, `{}`: 0, `{"a": -1}`: 0} {
		_, natural, err := ParseSort(document(t, text))
		if err != nil || natural != want {
			t.Errorf("%s: %d, %v", text, natural, err)
		}
	}
}

// A sorter with a limit gives the first of what one without gives, equal keys in the order of Add.
func TestSorterLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Sort{Keys: []SortKey{{Path: bson.ParsePath("a"), Desc: rapid.Bool().Draw(t, "desc")}}}
		var docs []bson.Document
		for i, n := range rapid.SliceOfN(rapid.Int32Range(0, 9), 0, 60).Draw(t, "values") {
			doc := begin(nil)
			doc = appendHeader(doc, bson.TypeInt32, []byte("a"))
			doc = bson.Int32(n).Append(doc)
			doc = appendHeader(doc, bson.TypeInt32, []byte("serial"))
			doc = bson.Int32(int32(i)).Append(doc)
			docs = append(docs, finish(doc, 0))
		}
		all, err := sorted(s, docs, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(docs)
		slices.SortStableFunc(want, func(x, y bson.Document) int {
			a, _ := bson.Get(x, "a")
			b, _ := bson.Get(y, "a")
			return directed(bson.Compare(a, b), s.Keys[0].Desc)
		})
		limit := rapid.IntRange(1, 70).Draw(t, "limit")
		first, err := sorted(s, docs, limit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !bytes.Equal(all[i], want[i]) || i < limit && !bytes.Equal(first[i], want[i]) {
				t.Fatalf("document %d differs", i)
			}
		}
		if len(first) != min(limit, len(docs)) {
			t.Fatalf("%d documents, limit %d", len(first), limit)
		}
	})
}

func TestSorterMemory(t *testing.T) {
	s := &Sort{Keys: []SortKey{{Path: bson.ParsePath("a")}}}
	doc := document(t, `{"a": "0123456789"}`)
	unlimited, limited := NewSorter(s, 0, 1000, nil), NewSorter(s, 5, 1000, nil)
	var err error
	added := 0
	for ; added < 1000 && err == nil; added++ {
		err = unlimited.Add(doc)
		if e := limited.Add(doc); e != nil {
			t.Fatalf("a sorter of 5 documents: %v", e)
		}
	}
	if !mongoerr.Is(err, mongoerr.QueryExceededMemoryNoDiskUse) {
		t.Fatalf("error %v", err)
	}
	if most := 1000 / len(doc); added > most {
		t.Errorf("%d documents of %d bytes in 1000", added, len(doc))
	}
}

func BenchmarkSortKey(b *testing.B) {
	s, _, err := ParseSort(document(b, `{"dev": 1, "time": -1}`))
	if err != nil {
		b.Fatal(err)
	}
	doc := logDocument(b)
	var key []byte
	b.ReportAllocs()
	for b.Loop() {
		if key, err = s.AppendKey(key[:0], doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSorterTop20(b *testing.B) {
	s := &Sort{Keys: []SortKey{{Path: bson.ParsePath("a")}}}
	random := rand.New(rand.NewPCG(1, 2))
	var docs []bson.Document
	for range 1000 {
		docs = append(docs, wrapValue(nil, "a", bson.Int64(random.Int64()).Value()))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sorted(s, docs, 20); err != nil {
			b.Fatal(err)
		}
	}
}

// logDocument is a line of a log of about 200 bytes.
func logDocument(t testing.TB) bson.Document {
	return document(t, `{"_id": {"$oid": "65a1b2c3d4e5f60718293a4b"}, "time": 1705136451, "dev": "sensor-00417", "level": 3, "count": 7,
		"message": "link up after 3 retries, 1000 Mbit/s full duplex", "host": "edge-12.example", "ok": true, "tags": ["net", "retry"]}`)
}
