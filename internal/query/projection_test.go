package query

import (
	"strings"
	"testing"
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
	checkWant(t, c, got)
}

func TestProjectionFields(t *testing.T) {
	for _, c := range []struct {
		spec string
		want string
		some bool
	}{
		{`{"a": 1, "b.c": 1}`, "_id a b", true},
		{`{"a": 1, "s": {"$add": ["$b.c", "$d"]}, "_id": 0}`, "a b d", true},
		{`{"t.u": "$v", "_id": 0}`, "t v", true},
		{`{"a": 1, "s": "$$ROOT"}`, "", false},
		{`{"a": 1, "_id": 0}`, "a", true},
		{`{"a": 0}`, "", false},
		{`{}`, "", false},
	} {
		p, err := ParseProjection(document(t, c.spec), nil, Env{})
		if err != nil {
			t.Fatal(err)
		}
		fields, some := p.Fields()
		if got := strings.Join(fields, " "); got != c.want || some != c.some {
			t.Errorf("%s: %q, %v", c.spec, got, some)
		}
	}
}

// TestStageProjectionTable applies the projections of aggregation stages; a case names its stage.
func TestStageProjectionTable(t *testing.T) {
	for _, c := range readTable(t, "projection_stage.txt") {
		t.Run(c.title, func(t *testing.T) {
			spec := value(t, c.fields["spec"])
			var p *Projection
			var err error
			switch stage := c.fields["stage"]; stage {
			case "$project":
				p, err = parseStageProjection(spec.Data, testEnv)
			case "$addFields":
				p, err = parseAddFields(stage, spec.Data, testEnv)
			case "$unset":
				p, err = parseUnset(spec, testEnv)
			default:
				t.Fatalf("line %d: stage %q", c.line, stage)
			}
			runProjection(t, c, p, err)
		})
	}
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
