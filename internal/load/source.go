package load

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Source is a file's documents in order.
type Source interface {
	// Next returns the next document and the number of the line that it begins on, or io.EOF. Any other error names the line, and the source can't go on.
	Next() (doc bson.Raw, line int, err error)
}

// maxLine is the longest line of Extended JSON: a 16 MiB document takes up to several times its size as text.
const maxLine = 128 << 20

// jsonLines reads a document a line; empty lines are passed over.
type jsonLines struct {
	scanner *bufio.Scanner
	line    int
}

// NewJSONLines reads Extended JSON (https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/), relaxed or canonical, a document a line.
func NewJSONLines(r io.Reader) Source {
	s := bufio.NewScanner(withoutMark(r))
	s.Buffer(make([]byte, 64<<10), maxLine)
	return &jsonLines{scanner: s}
}

func (j *jsonLines) Next() (bson.Raw, int, error) {
	for j.scanner.Scan() {
		j.line++
		text := bytes.TrimSpace(j.scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON(text, false, &doc); err != nil {
			return nil, j.line, fmt.Errorf("line %d is no document in Extended JSON: %w", j.line, err)
		}
		return doc, j.line, nil
	}
	if err := j.scanner.Err(); err != nil {
		return nil, j.line, fmt.Errorf("line %d: %w", j.line+1, err)
	}
	return nil, j.line, io.EOF
}

// withoutMark passes over the byte order mark that some programs write before UTF-8.
func withoutMark(r io.Reader) io.Reader {
	const mark = "\ufeff"
	b := bufio.NewReader(r)
	if head, _ := b.Peek(len(mark)); string(head) == mark {
		b.Discard(len(mark)) // it lies in the buffer
	}
	return b
}

// csvRows reads a document a record; the first record names the fields.
type csvRows struct {
	reader *csv.Reader
	fields []csvField
}

// csvField is a column: a field's name and how its text is read.
type csvField struct {
	name string
	kind columnType
}

// columnType is how a column's text is read.
type columnType struct {
	read func(text string) (any, error)
	what string // that the text has to be
}

// NewCSV reads comma-separated values (RFC 4180). The header names fields, each with an optional type, as in "time:date,dev:long,text:string"; without a
// type whole numbers become ints or longs, other numbers doubles, and the rest strings. An empty value leaves the field out.
func NewCSV(r io.Reader) (Source, error) {
	reader := csv.NewReader(withoutMark(r))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: a CSV file begins with the names of its fields")
	}
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	c := &csvRows{reader: reader}
	for _, column := range header {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), ":")
		as, ok := columnTypes[kind]
		switch {
		case name == "" || !ok:
			return nil, fmt.Errorf("line 1: column %q: write NAME or NAME:TYPE, with a type of %s", column, typeNames)
		case strings.Contains(name, "."):
			return nil, fmt.Errorf("line 1: column %q: embedded documents are loaded from JSON lines", column)
		case slices.ContainsFunc(c.fields, func(f csvField) bool { return f.name == name }):
			return nil, fmt.Errorf("line 1: column %q: the field is there twice", column)
		}
		c.fields = append(c.fields, csvField{name, as})
	}
	return c, nil
}

const typeNames = "auto, string, int, long, double, bool, date or objectId"

// columnTypes read a column's text by the name of its type.
var columnTypes = map[string]columnType{
	"":         {automatic, ""},
	"auto":     {automatic, ""},
	"string":   {func(s string) (any, error) { return s, nil }, ""},
	"int":      {func(s string) (any, error) { n, err := strconv.ParseInt(s, 10, 32); return int32(n), err }, "int: a whole number of 32 bits"},
	"long":     {func(s string) (any, error) { return strconv.ParseInt(s, 10, 64) }, "long: a whole number of 64 bits"},
	"double":   {func(s string) (any, error) { return strconv.ParseFloat(s, 64) }, "double: a number"},
	"bool":     {func(s string) (any, error) { return strconv.ParseBool(s) }, "bool: true or false"},
	"date":     {date, "date, such as 2001-02-01 or 2001-02-01T00:00:00Z"},
	"objectId": {func(s string) (any, error) { return bson.ObjectIDFromHex(s) }, "objectId: 24 hexadecimal digits"},
}

func automatic(s string) (any, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if int64(int32(n)) == n {
			return int32(n), nil
		}
		return n, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f, nil
	}
	return s, nil
}

func date(s string) (any, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339Nano, s)
}

func (c *csvRows) Next() (bson.Raw, int, error) {
	record, err := c.reader.Read()
	if err != nil {
		return nil, 0, err // encoding/csv names the line itself
	}
	line, _ := c.reader.FieldPos(0)
	doc := make(bson.D, 0, len(record))
	for i, text := range record {
		if text == "" {
			continue
		}
		v, err := c.fields[i].kind.read(text)
		if err != nil {
			return nil, line, fmt.Errorf("line %d: field %s: %.40q is no %s", line, c.fields[i].name, text, c.fields[i].kind.what)
		}
		doc = append(doc, bson.E{Key: c.fields[i].name, Value: v})
	}
	raw, err := bson.Marshal(doc)
	if err != nil {
		return nil, line, fmt.Errorf("line %d: %w", line, err)
	}
	return raw, line, nil
}
