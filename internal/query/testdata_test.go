package query

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mongobson "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// tableCase is one case of a file under testdata: lines "name: text" under a heading "## title"; a line "# text" is a comment, and a line that
// begins with spaces goes on with the one before.
type tableCase struct {
	title  string
	line   int
	fields map[string]string
}

// readTable reads the cases of a file under testdata.
func readTable(t testing.TB, name string) []tableCase {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []tableCase
	last := ""
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "# "):
		case strings.HasPrefix(line, "## "):
			cases = append(cases, tableCase{title: line[3:], line: n, fields: map[string]string{}})
		case strings.HasPrefix(line, " "):
			cases[len(cases)-1].fields[last] += line
		default:
			key, text, ok := strings.Cut(line, ": ")
			if !ok || len(cases) == 0 {
				t.Fatalf("%s:%d: no \"name: text\"", name, n)
			}
			if _, twice := cases[len(cases)-1].fields[key]; twice {
				t.Fatalf("%s:%d: a second %q", name, n, key)
			}
			cases[len(cases)-1].fields[key], last = text, key
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return cases
}

// document parses relaxed Extended JSON.
func document(t testing.TB, text string) bson.Document {
	t.Helper()
	return value(t, text).Data
}

// documents parses an array of documents.
func documents(t testing.TB, text string) []bson.Document {
	t.Helper()
	var docs []bson.Document
	if text == "" {
		return nil
	}
	for _, v := range arrayValues(value(t, text).Data) {
		docs = append(docs, v.Data)
	}
	return docs
}

// value parses any value of relaxed Extended JSON.
func value(t testing.TB, text string) bson.Value {
	t.Helper()
	var raw mongobson.Raw
	if err := mongobson.UnmarshalExtJSON([]byte(`{"v": `+text+`}`), false, &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	v, _ := bson.Get(raw, "v")
	return v
}

// extJSON renders a document for messages.
func extJSON(doc bson.Document) string {
	text, err := mongobson.MarshalExtJSON(mongobson.Raw(doc), false, false)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// checkWant demands that what was appended to "before" is the case's "want", and a valid document.
func checkWant(t *testing.T, c tableCase, got []byte) {
	t.Helper()
	got, ok := bytes.CutPrefix(got, []byte("before"))
	if !ok {
		t.Fatalf("line %d: what dst held is gone", c.line)
	}
	if err := bson.Validate(got, bson.MaxDepth); err != nil {
		t.Fatalf("line %d: %v", c.line, err)
	}
	if want := document(t, c.fields["want"]); !bytes.Equal(got, want) {
		t.Fatalf("line %d: got  %s\nwant %s", c.line, extJSON(got), extJSON(want))
	}
}
