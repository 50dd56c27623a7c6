package query

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// testNow is $$NOW in tests: 2024-02-29T12:00:00Z.
var testNow = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC).UnixMilli()

// TestExpressions runs the lines of testdata/expressions: see paths.txt for their form.
func TestExpressions(t *testing.T) {
	files, err := filepath.Glob("testdata/expressions/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc := bson.Document{5, 0, 0, 0, 0}
		for i, line := range strings.Split(string(text), "\n") {
			if rest, ok := strings.CutPrefix(line, "doc "); ok {
				doc = document(t, rest)
				continue
			}
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(name), i+1), func(t *testing.T) { runExpressionLine(t, doc, line) })
		}
	}
}

func runExpressionLine(t *testing.T, doc bson.Document, line string) {
	at := max(strings.LastIndex(line, " = "), strings.LastIndex(line, " ! "))
	if at < 0 {
		t.Fatalf("no value in %q", line)
	}
	source, want := line[:at], line[at+3:]
	got, err := evaluate(t, value(t, source), doc)
	if line[at+1] == '!' {
		if err == nil || fmt.Sprint(int(mongoerr.From(err).Code)) != want {
			t.Errorf("%s: %v, %v; want error %s", source, got, err, want)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	expected := bson.Value{}
	if want != "missing" {
		expected = value(t, want)
	}
	if got.Type != expected.Type || !bytes.Equal(got.Data, expected.Data) {
		t.Errorf("%s: %s %s; want %s", source, bson.TypeName(got.Type), valueText(got), want)
	}
}

func evaluate(t testing.TB, source bson.Value, doc bson.Document) (bson.Value, error) {
	e, err := ParseExpression(source, Env{NowMillis: testNow})
	if err != nil {
		return bson.Value{}, err
	}
	var s Scratch
	v, err := e.Eval(doc, &s)
	if err != nil {
		return v, err
	}
	again, err := e.Eval(doc, &s)
	if err != nil || again.Type != v.Type || compareValues(v, again) != 0 && v.Type != 0 {
		t.Errorf("a second evaluation gives %s, %v; the first gave %s", valueText(again), err, valueText(v))
	}
	return again, nil
}

// TestConstantFolding: what reads no document is a constant, and the same with a field in it is not.
func TestConstantFolding(t *testing.T) {
	for source, constant := range map[string]bool{
		`{"$add": [1, {"$multiply": [2, 3]}]}`:                              true,
		`{"$add": [1, "$a"]}`:                                               false,
		`{"a": {"b": [1, "$$NOW"]}}`:                                        true,
		`{"$let": {"vars": {"x": 1}, "in": "$$ROOT"}}`:                      false,
		`{"$dateAdd": {"startDate": "$$NOW", "unit": "day", "amount": -1}}`: true,
	} {
		e, err := ParseExpression(value(t, source), Env{NowMillis: testNow})
		if err != nil {
			t.Fatal(source, err)
		}
		if _, ok := e.Constant(); ok != constant {
			t.Errorf("%s: constant %v, want %v", source, ok, constant)
		}
	}
}

func TestExpressionFields(t *testing.T) {
	for source, want := range map[string]string{
		`{"$add": ["$b.c", "$a", "$b.d", 1]}`:                        "[a b] true",
		`{"$mergeObjects": ["$$ROOT", {"x": 1}]}`:                    "[] false",
		`{"$map": {"input": "$l", "in": {"$add": ["$$this.z", 1]}}}`: "[l] true",
		`5`: "[] true",
	} {
		e, err := ParseExpression(value(t, source), Env{})
		if err != nil {
			t.Fatal(source, err)
		}
		fields, ok := e.Fields()
		if got := fmt.Sprint(fields, ok); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

func TestLet(t *testing.T) {
	let, err := EvalLet(document(t, `{"x": {"$add": [1, 2]}, "gone": "$$REMOVE"}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseExpression(value(t, `["$$x", {"$type": "$$gone"}]`), Env{Let: let})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := e.Constant(); !ok || valueText(v) != `[ 3, "missing" ]` {
		t.Errorf("%s, %v", valueText(v), ok)
	}
	if _, err := EvalLet(document(t, `{"x": "$field"}`), Env{}); err == nil {
		t.Error("a let that reads a document was taken")
	}
}

// TestSummationIsExact: integers add up exactly whatever their order, and a sum of parts equals the whole.
func TestSummationIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ints := rapid.SliceOf(rapid.Int64()).Draw(t, "ints")
		var s summation
		for _, i := range ints {
			s.addInt(i)
		}
		for _, i := range ints[:len(ints)/2] {
			if i != -1<<63 {
				s.addInt(-i)
			}
		}
		want := int64(0)
		exact := true
		for k, i := range ints {
			if k < len(ints)/2 && i != -1<<63 {
				continue
			}
			next := want + i
			if (next > want) != (i > 0) && i != 0 {
				exact = false
			}
			want = next
		}
		if got, ok := s.integer(); exact && (!ok || got != want) {
			t.Fatalf("%v: %d, %v; want %d", ints, got, ok, want)
		}
	})
}
