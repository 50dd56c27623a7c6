package load

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// read takes all of a source: its documents as canonical Extended JSON behind their lines, and the error that ended it.
func read(s Source) (docs []string, lines []int, err error) {
	for {
		doc, line, err := s.Next()
		if errors.Is(err, io.EOF) {
			return docs, lines, nil
		}
		if err != nil {
			return docs, lines, err
		}
		docs, lines = append(docs, doc.String()), append(lines, line)
	}
}

func TestJSONLines(t *testing.T) {
	text := "\ufeff{\"a\": 1}\r\n\n  \t\n{\"a\": {\"$numberDecimal\": \"1.50\"}, \"b\": [true, null]}"
	docs, lines, err := read(NewJSONLines(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"a": {"$numberInt":"1"}}`, `{"a": {"$numberDecimal":"1.50"},"b": [true,null]}`}
	if len(docs) != 2 || docs[0] != want[0] || docs[1] != want[1] || lines[0] != 1 || lines[1] != 4 {
		t.Errorf("%q on lines %v, want %q on 1 and 4", docs, lines, want)
	}
}

func TestCSV(t *testing.T) {
	text := "\ufeffwhen:date,n,what:string,ok:bool,id:objectId,x:double\n" +
		"2001-02-03T04:05:06.789Z,12345678901,\"two\nlines\",1,5f1d7a0c9b1e8a0001000001,1e3\n" +
		"2001-02-03,1.5,,false,,\n"
	s, err := NewCSV(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	docs, lines, err := read(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"when": {"$date":{"$numberLong":"981173106789"}},"n": {"$numberLong":"12345678901"},"what": "two\nlines","ok": true,` +
			`"id": {"$oid":"5f1d7a0c9b1e8a0001000001"},"x": {"$numberDouble":"1000.0"}}`,
		`{"when": {"$date":{"$numberLong":"981158400000"}},"n": {"$numberDouble":"1.5"},"ok": false}`,
	}
	if len(docs) != 2 || docs[0] != want[0] || docs[1] != want[1] || lines[0] != 2 || lines[1] != 4 {
		t.Errorf("%q on lines %v,\nwant %q on 2 and 4", docs, lines, want)
	}
}

func TestCSVHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"":               "begins with the names",
		"a,,b":           `column ""`,
		"a:number":       `column "a:number"`,
		"a.b":            "JSON lines",
		"a:int,b,a":      "twice",
		"\"a\"b":         "line 1",
		"a:objectid":     "objectId",
		"time:date:date": `"time:date:date"`,
	} {
		if _, err := NewCSV(strings.NewReader(header)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that tells %q", header, err, want)
		}
	}
}

// FuzzCSV checks that no text makes the reader panic or go on for ever.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a\n1\n", "a\n\"", "a:int,b\n1,2\n\n3", "a\nb\"c", "\ufeff", "\n\n", "a\n\n\r\n\"x\"y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := NewCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		docs, lines, _ := read(s)
		for i := range docs {
			if lines[i] < 2 || i > 0 && lines[i] <= lines[i-1] {
				t.Fatalf("lines %v", lines)
			}
		}
	})
}
