package engine

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// fillTwo writes two tables in turn, 30 MB of incompressible text each, with files small enough that there are many.
func fillTwo(t *testing.T) *DB {
	t.Helper()
	db, err := Open(Options{Dir: filepath.Join(t.TempDir(), "data"), MemTableBytes: 2 << 20, CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 3000)
	for n := range 20_000 {
		random.Read(noise)
		name := Name{"db", []string{"old", "new"}[n%2]}
		mustWrite(t, db, []Write{{Table: name, Insert: doc("_id", n, "x", string(noise))}}, WriteOptions{})
	}
	if err := db.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestDropShrinksTheDisk: dropping one of two large tables that were written at the same time frees its half, by itself.
func TestDropShrinksTheDisk(t *testing.T) {
	db := fillTwo(t)
	before := db.Stats().TableBytes
	if before < 50<<20 {
		t.Fatalf("only %d bytes in tables", before)
	}
	if err := db.DropTable(Name{"db", "old"}); err != nil {
		t.Fatal(err)
	}
	for { // the test's own time limit ends this
		s := db.Stats()
		if s.TableBytes < before*6/10 && s.ObsoleteBytes == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	mustBeWhole(t, db, Name{"db", "new"}, 10_000)
}

// TestBorders: no file but those written while a table was still small holds keys of two large tables.
func TestBorders(t *testing.T) {
	db := fillTwo(t)
	levels, err := db.pebble.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	shared, files := int64(0), 0
	for _, level := range levels {
		for _, f := range level {
			files++
			if prefixOf(f.Smallest.UserKey) != prefixOf(f.Largest.UserKey) {
				shared += int64(f.Size)
			}
		}
	}
	if files < 4 || shared > 3*borderBytes {
		t.Errorf("%d files; %d bytes lie in files shared by tables", files, shared)
	}
}

// prefixOf is the prefix of the table that a key belongs to.
func prefixOf(key []byte) string { return string(key[:min(len(key), tablePrefixLen)]) }
