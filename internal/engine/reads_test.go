package engine

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// docOf reads Extended JSON.
func docOf(t testing.TB, json string) bson.Document {
	t.Helper()
	var d driver.D
	if err := driver.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return docFrom(t, d)
}

func docFrom(t testing.TB, d any) bson.Document {
	t.Helper()
	b, err := driver.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filterOf compiles a filter given as Extended JSON; "" is none.
func filterOf(t testing.TB, json string) *query.Filter {
	t.Helper()
	if json == "" {
		return nil
	}
	f, err := query.ParseFilter(docOf(t, json), query.Env{})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return f
}

func sortOf(t testing.TB, json string) *query.Sort {
	t.Helper()
	if json == "" {
		return nil
	}
	s, _, err := query.ParseSort(docOf(t, json))
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return s
}

// memoryDB opens a store in memory.
func memoryDB(t testing.TB, change func(*Options)) *DB {
	t.Helper()
	o := Options{Dir: "db", FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20, ballastBytes: 4 << 10}
	if change != nil {
		change(&o)
	}
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

var testName = Name{Database: "test", Collection: "c"}

// insert writes documents and returns those that the engine took.
func insert(t testing.TB, db *DB, docs ...bson.Document) []bson.Document {
	t.Helper()
	writes := make([]Write, len(docs))
	for i, d := range docs {
		writes[i] = Write{Table: testName, Insert: d}
	}
	results, err := db.Write(context.Background(), writes, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var taken []bson.Document
	for i, r := range results {
		if r.Err == nil {
			taken = append(taken, docs[i])
		}
	}
	return taken
}

// table returns the test's table, with the documents and indexes given as Extended JSON.
func tableOf(t testing.TB, db *DB, indexes, docs []string) *Table {
	t.Helper()
	if _, err := db.CreateTable(testName, nil); err != nil {
		t.Fatal(err)
	}
	var specs []bson.Document
	for _, s := range indexes {
		specs = append(specs, docOf(t, s))
	}
	if len(specs) > 0 {
		if _, _, err := db.CreateIndexes(context.Background(), testName, specs); err != nil {
			t.Fatal(err)
		}
	}
	raw := make([]bson.Document, len(docs))
	for i, d := range docs {
		raw[i] = docOf(t, d)
	}
	if got := insert(t, db, raw...); len(got) != len(raw) {
		t.Fatalf("%d of %d documents inserted", len(got), len(raw))
	}
	table, ok := db.Table(testName)
	if !ok {
		t.Fatal("no table")
	}
	return table
}

// all returns copies of a query's documents.
func all(t testing.TB, table *Table, q Query) []bson.Document {
	t.Helper()
	c, err := table.Find(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	out := drain(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func drain(t testing.TB, c *Cursor) []bson.Document {
	t.Helper()
	var out []bson.Document
	for {
		doc, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if doc == nil {
			return out
		}
		out = append(out, append(bson.Document(nil), doc...))
	}
}
