package engine

import (
	"math/rand/v2"
	"testing"
)

// TestScanLeavesTheCache: a scan over several times the cache's size, as a job's is, does not drive out what is read again and again. Pebble 2.1 has no
// read that passes its cache by; that its cache lets go first of blocks read once (CLOCK-Pro) is what we rely on.
func TestScanLeavesTheCache(t *testing.T) {
	db := memoryDB(t, func(o *Options) { o.CacheBytes, o.MemTableBytes = 5<<20, 1<<20 })
	const hot = 500
	random := rand.NewChaCha8([32]byte{7})
	insert := func(name Name, n int) *Table {
		var writes []Write
		for i := range n {
			pad := make([]byte, 1000)
			random.Read(pad)
			for k := range pad {
				pad[k] = 'a' + pad[k]%26
			}
			writes = append(writes, Write{Table: name, Insert: doc("_id", i, "pad", string(pad))})
		}
		mustWrite(t, db, writes, WriteOptions{})
		table, _ := db.Table(name)
		return table
	}
	used, scanned := insert(testTable, hot), insert(Name{"db", "scanned"}, 16000)
	if err := db.pebble.Compact(t.Context(), []byte{0}, []byte{0xff, 0xff}, false); err != nil {
		t.Fatal(err)
	}
	// misses of the cache during f
	misses := func(f func()) int64 {
		before := db.Stats().CacheMisses
		f()
		return db.Stats().CacheMisses - before
	}
	readHot := func() {
		for i := range hot {
			if _, ok, err := used.Get(nil, value(i)); err != nil || !ok {
				t.Fatalf("document %d: %v", i, err)
			}
		}
	}
	for range 5 {
		readHot()
	}
	scan := misses(func() {
		if _, err := scanned.Count(t.Context(), Query{Filter: filterOf(t, `{"none": 1}`)}); err != nil {
			t.Fatal(err)
		}
	})
	if size := scan * 16 << 10; size < 3*db.options.CacheBytes {
		t.Errorf("the scan read about %d bytes in blocks, too few to tell", size)
	}
	if n := misses(readHot); n > hot/100 {
		t.Errorf("%d blocks of what was read again and again were driven out", n)
	}
}

// TestMemtablesLeaveTheCache: what Options gives to blocks stays theirs, also where memtables take more than that. Pebble takes theirs off its cache.
func TestMemtablesLeaveTheCache(t *testing.T) {
	db := memoryDB(t, func(o *Options) { o.CacheBytes, o.MemTableBytes = 2<<20, 8<<20 })
	pad := string(make([]byte, 10_000))
	const documents = 100
	for i := range documents {
		mustInsert(t, db, doc("_id", i, "pad", pad))
	}
	if err := db.pebble.Compact(t.Context(), []byte{0}, []byte{0xff, 0xff}, false); err != nil {
		t.Fatal(err)
	}
	for i := range 300 { // into a memtable of the full size
		mustInsert(t, db, doc("_id", documents+i, "pad", pad))
	}
	table, _ := db.Table(testTable)
	read := func() {
		for i := range documents {
			if _, ok, err := table.Get(nil, value(i)); err != nil || !ok {
				t.Fatalf("document %d: %v", i, err)
			}
		}
	}
	read()
	before := db.Stats().CacheMisses
	if read(); db.Stats().CacheMisses > before {
		t.Errorf("%d blocks of 1 MB were driven out of a cache of 2 MiB", db.Stats().CacheMisses-before)
	}
}
