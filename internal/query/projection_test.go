package query

import (
	"bytes"
	"testing"

	"oxbow/internal/bson"
)

func TestProjectionTable(t *testing.T) {
	for _, c := range readTable(t, "projection.txt") {
		t.Run(c.title, func(t *testing.T) {
			p, err := ParseProjection(document(t, c.fields["spec"]), caseFilter(t, c), Env{})
			runProjection(t, c, p, err)
		})
	}
}

// caseFilter compiles the case's filter; nil if it has none.
func caseFilter(t *testing.T, c tableCase) *Filter {
	t.Helper()
	text, ok := c.fields["filter"]
	if !ok {
		return nil
	}
	filter, err := ParseFilter(document(t, text), Env{})
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// runProjection applies a projection to the case's document and compares.
func runProjection(t *testing.T, c tableCase, p *Projection, err error) {
	t.Helper()
	var got []byte
	if err == nil {
		got, err = p.Apply([]byte("before"), document(t, c.fields["doc"]))
	}
	if checkError(t, c, err) {
		return
	}
	got, ok := bytes.CutPrefix(got, []byte("before"))
	if !ok {
		t.Fatal("what dst held is gone")
	}
	if err := bson.Validate(got, bson.MaxDepth); err != nil {
		t.Fatal(err)
	}
	if want := document(t, c.fields["want"]); !bytes.Equal(got, want) {
		t.Fatalf("line %d: got  %s\nwant %s", c.line, extJSON(got), extJSON(want))
	}
}

func TestProjectionFields(t *testing.T) {
	for _, c := range []struct {
		spec string
		want string
		some bool
	}{
		{`{"a": 1, "b.c": 1}`, "a b _id", true},
		{`{"a": 1, "_id": 0}`, "a", true},
		{`{"a": 0}`, "", false},
		{`{}`, "", false},
	} {
		p, err := ParseProjection(document(t, c.spec), nil, Env{})
		if err != nil {
			t.Fatal(err)
		}
		fields, some := p.Fields()
		if got := joinWords(fields); got != c.want || some != c.some {
			t.Errorf("%s: %q, %v", c.spec, got, some)
		}
	}
}

func joinWords(words []string) string {
	text := ""
	for i, w := range words {
		if i > 0 {
			text += " "
		}
		text += w
	}
	return text
}

func BenchmarkInclusion(b *testing.B) {
	p, err := ParseProjection(document(b, `{"time": 1, "dev": 1, "message": 1}`), nil, Env{})
	if err != nil {
		b.Fatal(err)
	}
	doc := logDocument(b)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = p.Apply(dst[:0], doc); err != nil {
			b.Fatal(err)
		}
	}
}
