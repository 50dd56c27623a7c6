package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func TestTables(t *testing.T) {
	db := openTest(t)
	made, err := db.CreateTable(testTable, doc("capped", false))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := db.CreateTable(testTable, doc("capped", false)); err != nil || again != made {
		t.Errorf("the same again: %v, %v", again, err)
	}
	_, err = db.CreateTable(testTable, nil)
	wantCode(t, err, mongoerr.NamespaceExists)
	for _, bad := range []Name{{"", "c"}, {"a.b", "c"}, {"a b", "c"}, {"db", ""}, {"db", "a$b"}, {"db", ".a"}, {"db", "a."}, {strings.Repeat("d", 64), "c"}, {"db", strings.Repeat("c", 253)}} {
		_, err := db.CreateTable(bad, nil)
		wantCode(t, err, mongoerr.InvalidNamespace)
	}
	uuid := made.UUID()
	if err := db.DropTable(testTable); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.DropTable(testTable), mongoerr.NamespaceNotFound)
	if _, err := made.Stats(); !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		t.Errorf("stats of a dropped table: %v", err)
	}
	again, err := db.CreateTable(testTable, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.UUID() == uuid || again.id == made.id {
		t.Error("uuid or id used twice")
	}
	id := again.id
	if err := db.DropTable(testTable); err != nil {
		t.Fatal(err)
	}
	db = reopen(t, db)
	if again, err = db.CreateTable(testTable, nil); err != nil || again.id <= id {
		t.Errorf("id %d after %d: %v", again.id, id, err)
	}
}

func TestRenameTable(t *testing.T) {
	db := openTest(t)
	mustInsert(t, db, doc("_id", 1), doc("_id", 2))
	to := Name{"other", "d"}
	mustWrite(t, db, []Write{{Table: to, Insert: doc("_id", 9)}}, WriteOptions{})
	wantCode(t, db.RenameTable(testTable, to, false), mongoerr.NamespaceExists)
	wantCode(t, db.RenameTable(Name{"db", "nope"}, to, true), mongoerr.NamespaceNotFound)
	wantCode(t, db.RenameTable(to, to, true), mongoerr.IllegalOperation)
	if err := db.RenameTable(testTable, to, true); err != nil {
		t.Fatal(err)
	}
	mustBeWhole(t, db, to, 2)
	db = reopen(t, db)
	mustBeWhole(t, db, to, 2)
	if ts := db.Tables(""); len(ts) != 1 || ts[0].Name() != to {
		t.Errorf("%d tables", len(ts))
	}
}

// A dropped table's keys all go, soon, and those of its neighbours stay.
func TestDropGivesSpaceBack(t *testing.T) {
	db := openTest(t)
	names := []Name{{"db", "a"}, {"db", "b"}, {"db", "c"}}
	filler := bytes.Repeat([]byte("x"), 300)
	for _, name := range names {
		var writes []Write
		for i := range 3000 {
			writes = append(writes, Write{Table: name, Insert: doc("_id", i, "a", i%7, "s", fmt.Sprint(i, string(filler)))})
		}
		mustWrite(t, db, writes, WriteOptions{})
	}
	table, _ := db.Table(names[1])
	if err := db.DropTable(names[1]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, db, func() bool {
		start := appendTablePrefix(nil, table.id)
		return keysUnder(t, db, start, appendPrefixEnd(nil, start)) == 0 && keysUnder(t, db, appendRegistryKey(nil, table.id), appendRegistryKey(nil, table.id+1)) == 0
	})
	mustBeWhole(t, db, names[0], 3000)
	mustBeWhole(t, db, names[2], 3000)
	db = reopen(t, db)
	mustBeWhole(t, db, names[0], 3000)
	if _, ok := db.Table(names[1]); ok {
		t.Error("dropped table is back")
	}
}

// waitFor waits until the remover has made something true.
func waitFor(t *testing.T, db *DB, done func() bool) {
	t.Helper()
	for !done() {
		_, pending := db.removal.first()
		if !pending && !done() {
			t.Fatal("the remover is through, but it is not done")
		}
		if err := db.sync(); err != nil {
			t.Fatal(err)
		}
	}
}

// A drop whose state is stored, but not carried out, is finished by the next Open.
func TestDropIsFinishedAtOpen(t *testing.T) {
	db := openTest(t)
	mustInsert(t, db, doc("_id", 1, "a", 1), doc("_id", 2))
	table, _ := db.Table(testTable)
	b := db.pebble.NewBatch()
	if err := errors.Join(table.putDropping(b), db.commit(b), b.Close()); err != nil {
		t.Fatal(err)
	}
	db = reopen(t, db)
	if _, ok := db.Table(testTable); ok {
		t.Fatal("table is back")
	}
	waitFor(t, db, func() bool {
		start := appendTablePrefix(nil, table.id)
		return keysUnder(t, db, start, appendPrefixEnd(nil, start)) == 0 && keysUnder(t, db, []byte{kindRegistry}, []byte{kindRegistry + 1}) == 0
	})
}

// Index builds and drops that were cut short are undone and finished by the next Open.
func TestIndexStatesAtOpen(t *testing.T) {
	for _, state := range []indexState{indexBuilding, indexChecking, indexDropping} {
		db := openTest(t)
		mustIndex(t, db, doc("key", doc("a", 1)), doc("key", doc("b", 1)))
		mustInsert(t, db, doc("_id", 1, "a", list(1, 2), "b", list(1)), doc("_id", 2, "a", 3, "b", 4))
		table, _ := db.Table(testTable)
		indexes := table.version.Load().indexes
		indexes, _ = restate(indexes, indexes[:1], state)
		if err := table.change(indexes, db.commit); err != nil {
			t.Fatal(err)
		}
		db = reopen(t, db)
		v := mustBeWhole(t, db, testTable, 2)
		if _, ok := v.KeysPerIndex["a_1"]; ok || v.KeysPerIndex["b_1"] != 2 {
			t.Errorf("state %d: indexes %v", state, v.KeysPerIndex)
		}
		if n := keysUnder(t, db, indexSpace(table.id)...); n != 2 {
			t.Errorf("state %d: %d entries, want 2", state, n)
		}
		mustIndex(t, db, doc("key", doc("a", 1)))
		mustBeWhole(t, db, testTable, 2)
	}
}

func TestDataFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	o := Options{Dir: dir, CacheBytes: 1 << 20, MemTableBytes: 1 << 20}
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	wantNamed := func(what, word string) {
		t.Helper()
		db, err := Open(o)
		if err == nil {
			_ = db.Close()
			t.Fatalf("%s: opened", what)
		}
		if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: error %q names not %q and %q", what, err, dir, word)
		}
	}
	wantNamed("folder in use", "in use")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raised := o
	raised.Dir = filepath.Join(filepath.Dir(dir), "raised")
	if db, err = Open(raised); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.pebble.RatchetFormatMajorVersion(pebbleFormat+1), db.Close()); err != nil {
		t.Fatal(err)
	}
	dir, o = raised.Dir, raised
	wantNamed("a higher format of Pebble", "newer")
	dir = filepath.Join(filepath.Dir(dir), "data")
	o.Dir = dir
	format := filepath.Join(dir, formatFile)
	for content, word := range map[string]string{"oxbow format 99\n": "newer", "oxbow format 0\n": "format 0", "rubbish": formatFile} {
		if err := os.WriteFile(format, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		wantNamed(content, word)
	}
	if err := os.Remove(format); err != nil {
		t.Fatal(err)
	}
	wantNamed("another store", "not Oxbow's")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(file, "data")
	o.Dir = dir
	wantNamed("below a file", "create")
	if os.Geteuid() != 0 { // root writes everywhere
		dir = t.TempDir()
		o.Dir = dir
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		wantNamed("read-only folder", "not writable")
	}
}

func TestClosedStore(t *testing.T) {
	db, err := Open(testOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	mustInsert(t, db, doc("_id", 1))
	table, _ := db.Table(testTable)
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = db.Write(t.Context(), inserts(doc("_id", 2)), WriteOptions{})
	wantCode(t, err, mongoerr.InterruptedAtShutdown)
	_, err = db.CreateTable(testTable, nil)
	wantCode(t, err, mongoerr.InterruptedAtShutdown)
	_, _, err = db.CreateIndexes(t.Context(), testTable, []bson.Document{doc("key", doc("a", 1))})
	wantCode(t, err, mongoerr.InterruptedAtShutdown)
	wantCode(t, db.DropTable(testTable), mongoerr.InterruptedAtShutdown)
	_, err = table.Validate(t.Context())
	wantCode(t, err, mongoerr.InterruptedAtShutdown)
}
