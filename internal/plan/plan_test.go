package plan

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

var rewrite = flag.Bool("rewrite", false, "write what the plans are into testdata in place of what was expected")

// TestPlans compares plans with testdata/plans.txt: blocks of a heading "== layout: title", a command in relaxed Extended JSON, a
// line of dashes, and the plan as it prints. With -rewrite the plans are written back.
func TestPlans(t *testing.T) {
	const file = "testdata/plans.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	blocks := strings.Split(string(text), "== ")
	out.WriteString(blocks[0])
	for _, b := range blocks[1:] {
		head, want, _ := strings.Cut(b, "\n----\n")
		title, command, ok := strings.Cut(head, "\n")
		layout, _, named := strings.Cut(title, ":")
		if !ok || !named {
			t.Fatalf("no command, or no layout, in block %q", title)
		}
		got := planText(t, layout, command)
		fmt.Fprintf(&out, "== %s\n----\n%s\n", head, got)
		if strings.TrimSpace(want) != strings.TrimSpace(got) && !*rewrite {
			t.Errorf("%s\n%s\ngot:\n%s\nwant:\n%s", title, command, got, want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// planText plans a command and prints the plan, or the error.
func planText(t *testing.T, layout, command string) string {
	t.Helper()
	var raw driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(command), false, &raw); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	body := append(bson.Document(nil), raw...)
	src := source(t, layout)
	p, err := planned(body, src)
	if err != nil {
		return "error " + err.Error() + "\n"
	}
	return p
}

// now is 2001-01-04T12:00:00Z.
var now = time.Date(2001, 1, 4, 12, 0, 0, 0, time.UTC).UnixMilli()

func planned(body bson.Document, src Source) (string, error) {
	env := query.Env{NowMillis: now}
	req := &backend.Request{Body: body}
	name, _, _ := bson.First(body)
	abilities := func(name string) backend.Abilities { return backend.Abilities{OneBatch: name == "local"} }
	id := func() [12]byte { return [12]byte{11: 1} }
	switch name {
	case "find":
		f, err := statement.ParseFind(body)
		if err != nil {
			return "", err
		}
		p, err := NewFind(f, src, env)
		if err != nil {
			return "", err
		}
		return p.String(), nil
	case "insert":
		in, err := statement.ParseInsert(req)
		if err != nil {
			return "", err
		}
		return NewInsert(in, src, abilities, statement.Fill{NewID: id}, now).String(), nil
	case "update":
		u, err := statement.ParseUpdate(req)
		if err != nil {
			return "", err
		}
		return NewUpdate(u, src, abilities, id, env).String(), nil
	case "delete":
		d, err := statement.ParseDelete(req)
		if err != nil {
			return "", err
		}
		return NewDelete(d, src, abilities, env).String(), nil
	case "findAndModify":
		f, err := statement.ParseFindAndModify(body)
		if err != nil {
			return "", err
		}
		p, err := NewFindAndModify(f, src, id, env)
		if err != nil {
			return "", err
		}
		return p.String(), nil
	}
	return "", fmt.Errorf("no plan for %s", name)
}

// source is db.c with a layout: by day of "at" (the first five days of 2001), on one server ("remote", and "parted" with ordered: partition), by "k" into two
// slots, by both (two days), plain.
func source(t *testing.T, layout string) Source {
	t.Helper()
	src := Source{Database: "db", Name: "c", Backend: "local"}
	if layout == "plain" {
		return src
	}
	c := &catalog.Collection{Database: "db", Name: "c", Created: true}
	days, slots := 1, 1
	if layout == "time" || layout == "remote" || layout == "parted" || layout == "both" {
		c.Table.Layout.Time = &route.Time{Field: bson.ParsePath("at"), Unit: route.Date, Every: route.Day, Zone: time.UTC, Ahead: 2}
		days = 5
	}
	if layout == "both" {
		days = 2
	}
	if layout == "hash" || layout == "both" {
		c.Table.Layout.Hash = &route.Hash{Field: bson.ParsePath("k"), Count: 2}
		slots = 2
	}
	for d := range days {
		for s := range slots {
			c.Table.Partitions = append(c.Table.Partitions, partitionOf(c, layout, d, s))
		}
	}
	src.Collection, src.ByPartition = c, layout == "parted"
	return src
}

func partitionOf(c *catalog.Collection, layout string, day, slot int) route.Partition {
	p := route.Partition{Backend: "local", Database: "db", Collection: "c", Slot: -1, Start: route.MinTime, End: route.MaxTime, Generation: 1, State: route.Active}
	if layout == "remote" || layout == "parted" {
		p.Backend = "rs"
	}
	if c.Table.Layout.Time != nil {
		start := time.Date(2001, 1, 1+day, 0, 0, 0, 0, time.UTC)
		p.Start, p.End = start.UnixMilli(), start.AddDate(0, 0, 1).UnixMilli()
		p.Collection += start.Format("_0102")
	}
	if c.Table.Layout.Hash != nil {
		p.Slot = slot
		p.Collection += fmt.Sprintf("_%d", slot)
	}
	return p
}
