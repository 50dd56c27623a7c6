package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"oxbow/internal/bson"
)

var rewrite = flag.Bool("rewrite", false, "write the plans of testdata/plans anew")

// TestPlans runs the files of testdata/plans. Lines that begin with "index" or "insert" fill the table; "find" asks for a plan,
// which stands below it, indented. What follows the filter are the query's options: sort, hint, min, max, skip, limit.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runPlans(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("got\n%s\nwant\n%s", got, text)
			}
		})
	}
}

func runPlans(t *testing.T, text string) string {
	db := memoryDB(t, nil)
	table := tableOf(t, db, nil, nil)
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		fmt.Fprintln(&out, line)
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "index":
			if _, _, err := db.CreateIndexes(context.Background(), testName, []bson.Document{docOf(t, rest)}); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case "insert":
			insertLine(t, db, rest)
		case "find":
			for planLine := range strings.SplitSeq(strings.TrimSuffix(planText(t, table, rest), "\n"), "\n") {
				fmt.Fprintf(&out, "\t%s\n", planLine)
			}
		}
	}
	return out.String()
}

// insertLine inserts "N of {…}", in which # stands for 0 to N-1, or one document.
func insertLine(t *testing.T, db *DB, rest string) {
	n := 1
	if count, template, ok := strings.Cut(rest, " of "); ok {
		var err error
		if n, err = strconv.Atoi(count); err != nil {
			t.Fatal(err)
		}
		rest = template
	}
	docs := make([]bson.Document, n)
	for i := range docs {
		docs[i] = docOf(t, strings.ReplaceAll(rest, "#", strconv.Itoa(i)))
	}
	if got := insert(t, db, docs...); len(got) != n {
		t.Fatalf("%d of %d inserted", len(got), n)
	}
}

func planText(t *testing.T, table *Table, text string) string {
	q, err := queryOf(t, text)
	if err != nil {
		return err.Error()
	}
	c, err := table.open(&q)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.x.plan.String()
}

// queryOf reads a filter and, behind it, names and values of options, with " | " between.
func queryOf(t *testing.T, text string) (Query, error) {
	parts := strings.Split(text, " | ")
	q := Query{Filter: filterOf(t, parts[0])}
	for _, option := range parts[1:] {
		name, value, _ := strings.Cut(option, " ")
		switch name {
		case "sort":
			q.Sort = sortOf(t, value)
		case "hint":
			if strings.HasPrefix(value, "{") {
				q.Hint = bson.Value{Type: bson.TypeDocument, Data: docOf(t, value)}
			} else {
				q.Hint = stringValue(value)
			}
		case "min":
			q.Min = docOf(t, value)
		case "max":
			q.Max = docOf(t, value)
		case "skip", "limit":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return q, err
			}
			if name == "skip" {
				q.Skip = n
			} else {
				q.Limit = n
			}
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	return q, nil
}
