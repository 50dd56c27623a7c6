package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// testOptions are a small store in memory.
func testOptions(fs vfs.FS) Options {
	return Options{Dir: "store", FS: fs, CacheBytes: 4 << 20, MemTableBytes: 1 << 20, SyncInterval: 20 * time.Millisecond, ballastBytes: 4 << 10}
}

func openTest(t *testing.T) *DB {
	t.Helper()
	db, err := Open(testOptions(vfs.NewMem()))
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

// doc makes a document of pairs of keys and values.
func doc(pairs ...any) bson.Document {
	var d []byte
	for i := 0; i < len(pairs); i += 2 {
		d = bsoncore.AppendValueElement(d, pairs[i].(string), value(pairs[i+1]))
	}
	return bsoncore.BuildDocument(nil, d)
}

// list makes an array.
func list(of ...any) bson.Array {
	var d []byte
	for i, v := range of {
		d = bsoncore.AppendValueElement(d, fmt.Sprint(i), value(v))
	}
	return bson.Array(bsoncore.BuildDocument(nil, d))
}

func value(v any) bson.Value {
	switch v := v.(type) {
	case int:
		return bson.Value{Type: bson.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(v))}
	case int64:
		return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, v)}
	case float64:
		return bson.Value{Type: bson.TypeDouble, Data: bsoncore.AppendDouble(nil, v)}
	case string:
		return bson.Value{Type: bson.TypeString, Data: bsoncore.AppendString(nil, v)}
	case bool:
		return bson.Value{Type: bson.TypeBoolean, Data: bsoncore.AppendBoolean(nil, v)}
	case bson.Document:
		return bson.Value{Type: bson.TypeDocument, Data: v}
	case bson.Array:
		return bson.Value{Type: bson.TypeArray, Data: v}
	case bson.Value:
		return v
	case nil:
		return bson.Null
	}
	panic(fmt.Sprintf("no BSON for %T", v))
}

var testTable = Name{"db", "c"}

func inserts(docs ...bson.Document) []Write {
	var out []Write
	for i, d := range docs {
		out = append(out, Write{Table: testTable, Insert: d, Statement: int32(i)})
	}
	return out
}

func mustWrite(t *testing.T, db *DB, writes []Write, o WriteOptions) []Result {
	t.Helper()
	rs, err := db.Write(context.Background(), writes, o)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// mustInsert inserts documents without errors.
func mustInsert(t *testing.T, db *DB, docs ...bson.Document) {
	t.Helper()
	for i, r := range mustWrite(t, db, inserts(docs...), WriteOptions{}) {
		if r.Err != nil || r.Modified != 1 {
			t.Fatalf("insert %d: %+v", i, r)
		}
	}
}

// mustBeWhole validates a table and checks its number of documents.
func mustBeWhole(t *testing.T, db *DB, name Name, documents int64) ValidateResult {
	t.Helper()
	table, ok := db.Table(name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	v, err := table.Validate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v.Errors {
		t.Error(e)
	}
	if v.Documents != documents {
		t.Errorf("%d documents, want %d", v.Documents, documents)
	}
	s, err := table.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Documents != documents {
		t.Errorf("counter in memory says %d documents, want %d", s.Documents, documents)
	}
	return v
}

func mustIndex(t *testing.T, db *DB, specs ...bson.Document) {
	t.Helper()
	if _, _, err := db.CreateIndexes(context.Background(), testTable, specs); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code mongoerr.Code) *mongoerr.Error {
	t.Helper()
	if !mongoerr.Is(err, code) {
		t.Fatalf("error %v, want %s", err, code)
	}
	return mongoerr.From(err)
}

// reopen closes a store and opens it again.
func reopen(t *testing.T, db *DB) *DB {
	t.Helper()
	o := db.options
	if err := db.Close(); err != nil {
		t.Fatal(err)
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
