package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func TestIndexSpecRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec bson.Document
		code mongoerr.Code
	}{
		"no key":              {doc("name", "a"), mongoerr.FailedToParse},
		"key is no document":  {doc("key", 1), mongoerr.TypeMismatch},
		"empty key":           {doc("key", doc()), mongoerr.CannotCreateIndex},
		"zero":                {doc("key", doc("a", 0)), mongoerr.CannotCreateIndex},
		"text":                {doc("key", doc("a", "text")), mongoerr.CannotCreateIndex},
		"2dsphere":            {doc("key", doc("a", "2dsphere")), mongoerr.CannotCreateIndex},
		"hashed":              {doc("key", doc("a", "hashed")), mongoerr.CannotCreateIndex},
		"unknown plugin":      {doc("key", doc("a", "nope")), mongoerr.CannotCreateIndex},
		"wildcard":            {doc("key", doc("$**", 1)), mongoerr.CannotCreateIndex},
		"dollar":              {doc("key", doc("a.$b", 1)), mongoerr.CannotCreateIndex},
		"empty part":          {doc("key", doc("a..b", 1)), mongoerr.CannotCreateIndex},
		"boolean direction":   {doc("key", doc("a", true)), mongoerr.CannotCreateIndex},
		"collation":           {doc("key", doc("a", 1), "collation", doc("locale", "en")), mongoerr.CannotCreateIndex},
		"unknown option":      {doc("key", doc("a", 1), "colour", 1), mongoerr.InvalidIndexSpecOption},
		"unique no flag":      {doc("key", doc("a", 1), "unique", "yes"), mongoerr.TypeMismatch},
		"empty name":          {doc("key", doc("a", 1), "name", ""), mongoerr.CannotCreateIndex},
		"star":                {doc("key", doc("a", 1), "name", "*"), mongoerr.BadValue},
		"reserved name":       {doc("key", doc("a", 1), "name", "_id_"), mongoerr.BadValue},
		"version 0":           {doc("key", doc("a", 1), "v", 0), mongoerr.CannotCreateIndex},
		"negative expiry":     {doc("key", doc("a", 1), "expireAfterSeconds", -1), mongoerr.CannotCreateIndex},
		"expiry":              {doc("key", doc("a", 1), "expireAfterSeconds", 60), mongoerr.CommandNotSupported},
		"expiry of compound":  {doc("key", doc("a", 1, "b", 1), "expireAfterSeconds", 1), mongoerr.CannotCreateIndex},
		"sparse _id":          {doc("key", doc("_id", 1), "sparse", true), mongoerr.InvalidIndexSpecOption},
		"partial no document": {doc("key", doc("a", 1), "partialFilterExpression", 1), mongoerr.TypeMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t)
			_, _, err := db.CreateIndexes(context.Background(), testTable, []bson.Document{c.spec})
			wantCode(t, err, c.code)
			if _, ok := db.Table(testTable); ok {
				t.Error("the table was made")
			}
		})
	}
}

func TestIndexConflicts(t *testing.T) {
	db := openTest(t)
	ctx := context.Background()
	create := func(specs ...bson.Document) (before, after int, err error) {
		return db.CreateIndexes(ctx, testTable, specs)
	}
	if before, after, err := create(doc("key", doc("a", 1))); before != 1 || after != 2 || err != nil {
		t.Fatal(before, after, err)
	}
	if before, after, err := create(doc("key", doc("a", 1.0)), doc("key", doc("_id", 1))); before != 2 || after != 2 || err != nil {
		t.Fatal(before, after, err)
	}
	_, _, err := create(doc("key", doc("b", 1), "name", "a_1"))
	wantCode(t, err, mongoerr.IndexKeySpecsConflict)
	_, _, err = create(doc("key", doc("a", 1), "unique", true))
	wantCode(t, err, mongoerr.IndexKeySpecsConflict)
	_, _, err = create(doc("key", doc("a", 1), "hidden", true))
	wantCode(t, err, mongoerr.IndexOptionsConflict)
	_, _, err = create(doc("key", doc("z", 1)), doc("key", doc("a", 1), "name", "other"))
	if e := wantCode(t, err, mongoerr.IndexOptionsConflict); e.Message != "Index already exists with a different name: a_1" {
		t.Error(e.Message)
	}
	table, _ := db.Table(testTable)
	if n := len(table.Indexes()); n != 2 {
		t.Errorf("%d indexes after refused ones, want 2", n)
	}
	var many []bson.Document
	for i := range 63 {
		many = append(many, doc("key", doc(fmt.Sprint("f", i), 1)))
	}
	_, _, err = create(many...)
	wantCode(t, err, mongoerr.CannotCreateIndex)
	if _, after, err := create(many[:62]...); after != 64 || err != nil {
		t.Error(after, err)
	}
	_, err = db.DropIndexes(testTable, []string{"a_1", "nope"})
	wantCode(t, err, mongoerr.IndexNotFound)
	_, err = db.DropIndexes(testTable, []string{"_id_"})
	wantCode(t, err, mongoerr.InvalidOptions)
	if before, err := db.DropIndexes(testTable, []string{"*"}); before != 64 || err != nil {
		t.Error(before, err)
	}
	if n := len(table.Indexes()); n != 1 {
		t.Errorf("%d indexes after dropping all", n)
	}
}

func TestIndexBuildFindsDuplicates(t *testing.T) {
	db := openTest(t)
	var docs []bson.Document
	for i := range 1000 {
		docs = append(docs, doc("_id", i, "name", fmt.Sprint("n", i%999), "a", i))
	}
	mustInsert(t, db, docs...)
	_, _, err := db.CreateIndexes(context.Background(), testTable, []bson.Document{doc("key", doc("a", 1)), doc("key", doc("name", 1), "unique", true)})
	e := wantCode(t, err, mongoerr.DuplicateKey)
	if want := `E11000 duplicate key error collection: db.c index: name_1 dup key: { name: "n0" }`; e.Message != want {
		t.Errorf("message %q, want %q", e.Message, want)
	}
	table, _ := db.Table(testTable)
	if n := len(table.Indexes()); n != 1 {
		t.Errorf("%d indexes after a failed build, want only _id_", n)
	}
	if n := keysUnder(t, db, indexSpace(table.id)...); n != 0 {
		t.Errorf("%d entries left of a failed build", n)
	}
	mustIndex(t, db, doc("key", doc("name", 1)), doc("key", doc("a", -1), "unique", true))
	mustBeWhole(t, db, testTable, 1000)
	rs := mustWrite(t, db, inserts(doc("_id", 5000, "a", 7)), WriteOptions{})
	wantCode(t, rs[0].Err, mongoerr.DuplicateKey)
}

// indexSpace bounds all entries of a table's indexes.
func indexSpace(table uint32) [][]byte {
	return [][]byte{appendPartPrefix(nil, table, 1), appendPartPrefix(nil, table, partArrays)}
}

// keysUnder counts the keys of a range.
func keysUnder(t *testing.T, db *DB, bounds ...[]byte) int {
	t.Helper()
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: bounds[0], UpperBound: bounds[1]})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for it.First(); it.Valid(); it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// Indexes are built and dropped while writers insert; in the end each has exactly what the documents imply.
func TestIndexBuildWhileWriting(t *testing.T) {
	db := openTest(t)
	ctx := context.Background()
	var docs []bson.Document
	for i := range 2000 {
		docs = append(docs, doc("_id", i, "a", i%50, "u", i, "tags", list(i%3, i%5)))
	}
	mustInsert(t, db, docs...)
	var next atomic.Int64
	next.Store(2000)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for next.Load() < 12000 {
				select {
				case <-stop:
					return
				default:
				}
				var docs []bson.Document
				for range 10 {
					i := int(next.Add(1)) - 1
					docs = append(docs, doc("_id", i, "a", i%50, "u", i, "tags", list(i%3, i%5)))
				}
				for _, r := range mustWrite(t, db, inserts(docs...), WriteOptions{}) {
					if r.Err != nil {
						t.Error(r.Err)
					}
				}
			}
		})
	}
	specs := []bson.Document{doc("key", doc("a", 1)), doc("key", doc("u", -1), "unique", true), doc("key", doc("tags", 1, "a", 1))}
	for range 5 {
		if _, _, err := db.CreateIndexes(ctx, testTable, specs); err != nil {
			t.Error(err)
			break
		}
		if _, err := db.DropIndexes(testTable, []string{"a_1", "tags_1_a_1"}); err != nil {
			t.Error(err)
			break
		}
	}
	if _, _, err := db.CreateIndexes(ctx, testTable, specs); err != nil {
		t.Error(err)
	}
	close(stop)
	writers.Wait()
	v := mustBeWhole(t, db, testTable, next.Load())
	if len(v.KeysPerIndex) != 4 {
		t.Errorf("indexes %v", v.KeysPerIndex)
	}
}

func TestEntriesOfDocuments(t *testing.T) {
	a := func(paths ...string) (keys []IndexKey) {
		for _, p := range paths {
			keys = append(keys, IndexKey{Path: bson.ParsePath(p)})
		}
		return keys
	}
	missing := bson.Value{}
	for name, c := range map[string]struct {
		keys   []IndexKey
		sparse bool
		doc    bson.Document
		want   [][]any // values of each entry, in order
		arrays uint32
	}{
		"plain":                     {a("a", "b"), false, doc("a", 1, "b", "x"), [][]any{{1, "x"}}, 0},
		"missing is null":           {a("a", "b"), false, doc("b", 1), [][]any{{nil, 1}}, 0},
		"nested":                    {a("a.b"), false, doc("a", doc("b", 1)), [][]any{{1}}, 0},
		"through a scalar":          {a("a.b"), false, doc("a", 5), [][]any{{nil}}, 0},
		"array":                     {a("a"), false, doc("a", list(2, 1, 2)), [][]any{{1}, {2}}, 1},
		"empty array":               {a("a"), false, doc("a", list()), [][]any{{missing}}, 1},
		"empty array on the way":    {a("a.b"), false, doc("a", list()), [][]any{{nil}}, 1},
		"array of documents":        {a("a.b", "a.c"), false, doc("a", list(doc("b", 1, "c", 2), doc("b", 3, "c", 4))), [][]any{{1, 2}, {3, 4}}, 3},
		"array of mixed":            {a("a.b"), false, doc("a", list(7, doc("b", 1))), [][]any{{nil}, {1}}, 1},
		"array in an array":         {a("a"), false, doc("a", list(list(1, 2), 3)), [][]any{{3}, {list(1, 2)}}, 1},
		"arrays below one another":  {a("a.b"), false, doc("a", list(doc("b", list(1, 2)), doc("b", list(3)))), [][]any{{1}, {2}, {3}}, 1},
		"second key":                {a("x", "a"), false, doc("x", 9, "a", list(1, 2)), [][]any{{9, 1}, {9, 2}}, 2},
		"by place":                  {a("a.0"), false, doc("a", list(5, 6)), [][]any{{5}}, 1},
		"by place and below":        {a("a.1.b"), false, doc("a", list(5, doc("b", 6))), [][]any{{6}}, 1},
		"sparse, missing":           {a("a", "b"), true, doc("c", 1), nil, 0},
		"sparse, one there":         {a("a", "b"), true, doc("b", 1), [][]any{{nil, 1}}, 0},
		"sparse, null is there":     {a("a"), true, doc("a", nil), [][]any{{nil}}, 0},
		"sparse, nothing in array":  {a("a.b"), true, doc("a", list(1)), nil, 1},
		"numbers of types are same": {a("a"), false, doc("a", list(1, 1.0, int64(1))), [][]any{{1}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ix := index{Index: Index{Keys: c.keys, Sparse: c.sparse}, prefix: appendIndexPrefix(nil, 1, 1, c.keys)}
			id := bson.AppendKey(nil, value("id"), false)
			var e entries
			if err := ix.generate(&e, c.doc, id); err != nil {
				t.Fatal(err)
			}
			if e.len() != len(c.want) || e.arrays != c.arrays {
				t.Fatalf("%d entries, arrays %b; want %d, %b", e.len(), e.arrays, len(c.want), c.arrays)
			}
			for i, values := range c.want {
				want := append([]byte(nil), ix.prefix...)
				for _, v := range values {
					want = bson.AppendKey(want, value(v), false)
				}
				if string(e.fields(i)) != string(want) || string(e.key(i)) != string(want)+string(id) {
					t.Errorf("entry %d is %x, want %x", i, e.key(i), want)
				}
				if at := splitEntry(e.key(i)); at != len(want) {
					t.Errorf("entry %d splits at %d, want %d", i, at, len(want))
				}
				got := ix.valueOf(e.fields(i), c.doc)
				it := bson.Elements(got)
				for _, v := range values {
					if w := value(v); !it.Next() || (w.Type != 0 && bson.Compare(it.Value(), w) != 0) {
						t.Errorf("entry %d is of values %s", i, got)
					}
				}
			}
		})
	}
}
