package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// smallDisk is a disk that is full as long as full is set, but for the room that the ballast gives back when it is removed.
type smallDisk struct {
	inner *vfs.MemFS
	full  atomic.Bool
	room  atomic.Int64 // operations that still succeed once the ballast is gone
	only  string       // suffix of the files concerned, "" for all
}

func (d *smallDisk) String() string { return "small disk" }

func (d *smallDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate, errorfs.OpReuseForWrite:
	default:
		return nil
	}
	if !d.full.Load() || !strings.HasSuffix(op.Path, d.only) {
		return nil
	}
	if _, err := d.inner.Stat("store/" + ballastFile); errors.Is(err, os.ErrNotExist) && d.room.Add(-1) >= 0 {
		return nil
	}
	return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
}

// fill inserts until the store refuses, and returns how many documents were acknowledged and the error.
func fill(t *testing.T, db *DB, from int) (acknowledged int, err error) {
	t.Helper()
	pad := strings.Repeat("x", 2000)
	for n := from; n < from+100_000; n++ {
		rs, err := db.Write(t.Context(), inserts(doc("_id", n, "a", n, "pad", pad)), WriteOptions{Sync: n%16 == 0})
		if err != nil {
			return n, err
		}
		if rs[0].Err != nil {
			t.Fatal(rs[0].Err)
		}
	}
	t.Fatal("the disk is full and nobody minds")
	return 0, nil
}

// On a full disk the store refuses writes, says where, answers reads, loses nothing that it acknowledged, and goes on once there is room.
func TestFullDisk(t *testing.T) {
	disk := &smallDisk{inner: vfs.NewCrashableMem()}
	disk.room.Store(200)
	o := testOptions(errorfs.Wrap(disk.inner, disk))
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	mustIndex(t, db, doc("key", doc("a", 1)))
	mustInsert(t, db, doc("_id", -1))
	db.health.check() // makes the ballast
	disk.full.Store(true)
	n, err := fill(t, db, 0)
	e := wantCode(t, err, mongoerr.OutOfDiskSpace)
	if !strings.Contains(e.Message, `"store"`) {
		t.Errorf("message %q names no folder", e.Message)
	}
	_, err = db.Write(t.Context(), inserts(doc("_id", "more")), WriteOptions{})
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	_, err = db.CreateTable(Name{"db", "other"}, nil)
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	mustBeWhole(t, db, testTable, int64(n)+1)
	if err := db.sync(); err != nil {
		t.Errorf("what was acknowledged could not be synced: %v", err)
	}
	after, err := Open(testOptions(disk.inner.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		t.Fatal(err)
	}
	mustBeWhole(t, after, testTable, int64(n)+1)
	if err := after.Close(); err != nil {
		t.Error(err)
	}

	disk.full.Store(false)
	db.health.check()
	mustInsert(t, db, doc("_id", "room again"))
	db = reopen(t, db)
	mustBeWhole(t, db, testTable, int64(n)+2)
}

// When the log itself can't be written, nothing is acknowledged any more, and what was synced is there after a new start.
func TestLogFails(t *testing.T) {
	disk := &smallDisk{inner: vfs.NewCrashableMem(), only: ".log"}
	db, err := Open(testOptions(errorfs.Wrap(disk.inner, disk)))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, inserts(doc("_id", 1), doc("_id", 2)), WriteOptions{Sync: true})
	disk.full.Store(true)
	rs, err := db.Write(t.Context(), inserts(doc("_id", 3)), WriteOptions{Sync: true})
	if err == nil {
		t.Fatalf("acknowledged: %+v", rs)
	}
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	_, err = db.Write(t.Context(), inserts(doc("_id", 4)), WriteOptions{})
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	if get(t, db, 1) == nil {
		t.Error("nothing can be read")
	}
	if err := db.Close(); err == nil {
		t.Error("closed as if nothing had happened")
	}
	disk.full.Store(false)
	after, err := Open(testOptions(disk.inner.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if get(t, after, 1) == nil || get(t, after, 2) == nil {
		t.Error("a synced document is lost")
	}
	mustWrite(t, after, inserts(doc("_id", 5)), WriteOptions{Sync: true})
}

func TestDiskIsChecked(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: db.health.reserve - 1, TotalBytes: 1 << 30})
	db.health.check()
	_, err = db.Write(t.Context(), inserts(doc("_id", 1)), WriteOptions{})
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 29, TotalBytes: 1 << 30})
	db.health.check()
	mustInsert(t, db, doc("_id", 1))
}

// A disk on which nothing may be written any more can still be relieved by drops and by the writes that belong to them, as long as there is
// room for their own records.
func TestDropOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.ReserveDatabase = "records"
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustIndex(t, db, doc("key", doc("a", 1)), doc("key", doc("b", 1)))
	mustInsert(t, db, doc("_id", 1, "a", 1))
	records := Name{"records", "c"}
	if _, err := db.CreateTable(records, nil); err != nil {
		t.Fatal(err)
	}
	record := []Write{{Table: records, Insert: doc("_id", 1)}}
	free := func(n uint64) {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 30})
		db.health.check()
	}
	free(spareBytes - 1)
	wantCode(t, db.DropTable(testTable), mongoerr.OutOfDiskSpace)
	_, err = db.Write(t.Context(), record, WriteOptions{})
	wantCode(t, err, mongoerr.OutOfDiskSpace)
	free(spareBytes)
	for _, writes := range [][]Write{inserts(doc("_id", 2)), append(inserts(doc("_id", 2)), record...)} {
		_, err = db.Write(t.Context(), writes, WriteOptions{})
		wantCode(t, err, mongoerr.OutOfDiskSpace)
	}
	for _, writes := range [][]Write{record, {{Table: records, Delete: &DeleteStatement{Query: Query{Filter: mustFilter(t, doc("_id", 1))}}}}} {
		if r := mustWrite(t, db, writes, WriteOptions{})[0]; r.Err != nil || r.Modified != 1 {
			t.Fatalf("write a record: %+v", r)
		}
	}
	if _, err := db.DropIndexes(testTable, []string{"a_1"}); err != nil {
		t.Fatalf("drop an index: %v", err)
	}
	mustBeWhole(t, db, testTable, 1)
	table, _ := db.Table(testTable)
	if err := db.DropTable(testTable); err != nil {
		t.Fatalf("drop a table: %v", err)
	}
	waitFor(t, db, func() bool {
		return keysUnder(t, db, appendTablePrefix(nil, table.id), appendTablePrefix(nil, table.id+1)) == 0
	})
}

// fullThen is a context that ends at its first look, as the disk fills.
type fullThen struct {
	context.Context
	fill func()
}

func (c fullThen) Err() error {
	c.fill()
	return context.Canceled
}

// An index whose build failed, and which could not be taken out since the disk was full, is neither taken for one that is there nor maintained
// for ever: it goes as soon as there is room.
func TestUnfinishedIndexOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open(testOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustInsert(t, db, doc("_id", 1, "a", 1))
	free := func(n uint64) {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 30})
		db.health.check()
	}
	table, _ := db.Table(testTable)
	spec := []bson.Document{doc("key", doc("a", 1), "unique", true)}
	for _, again := range []bool{true, false} {
		_, _, err = db.CreateIndexes(fullThen{t.Context(), func() { free(spareBytes - 1) }}, testTable, spec)
		if !mongoerr.Is(err, mongoerr.Interrupted) {
			t.Fatalf("the build ends with %v", err)
		}
		if n := len(table.version.Load().indexes); n != 1 {
			t.Fatalf("%d indexes: the disk was not full in time", n)
		}
		if db.retryUnfinished(); len(table.version.Load().indexes) != 1 {
			t.Fatal("taken out on a full disk")
		}
		free(1 << 29)
		if again {
			if before, after, err := db.CreateIndexes(t.Context(), testTable, spec); before != 1 || after != 2 || err != nil {
				t.Fatalf("made again: from %d to %d, %v", before, after, err)
			}
			if v := mustBeWhole(t, db, testTable, 1); v.KeysPerIndex["a_1"] != 1 {
				t.Errorf("entries: %v", v.KeysPerIndex)
			}
			if _, err := db.DropIndexes(testTable, []string{"a_1"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if db.retryUnfinished(); len(table.version.Load().indexes) != 0 {
			t.Error("still there with room on the disk")
		}
		mustInsert(t, db, doc("_id", 2, "a", 1)) // the unique index is gone
		mustBeWhole(t, db, testTable, 2)
	}
}

// A data folder that is taken away under the store ends its writes: they would go where nobody finds them.
func TestFolderRemoved(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open(testOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	mustInsert(t, db, doc("_id", 1))
	if err := mem.RemoveAll("store"); err != nil {
		t.Fatal(err)
	}
	db.health.check()
	_, err = db.Write(t.Context(), inserts(doc("_id", 2)), WriteOptions{})
	if e := wantCode(t, err, mongoerr.InternalError); !strings.Contains(e.Message, "removed") || !strings.Contains(e.Message, `"store"`) {
		t.Errorf("the error is %q", e.Message)
	}
	if get(t, db, 1) == nil {
		t.Error("nothing can be read any more")
	}
	if err := db.Close(); err == nil {
		t.Error("closed as if nothing had happened")
	}
}

// A fast writer doesn't have to wait for the next second to be told that the disk fills.
func TestLookAfterManyBytes(t *testing.T) {
	h := newHealth(testOptions(vfs.NewMem()).withDefaults())
	if h.wrote(lookBytes - 1); len(h.look) != 0 {
		t.Error("asked too early")
	}
	h.wrote(1)
	h.wrote(1)
	if len(h.look) != 1 {
		t.Error("not asked")
	}
}

// The comparer keeps Pebble's rules for keys of all kinds, whole and cut anywhere.
func TestComparer(t *testing.T) {
	keys := []IndexKey{{Path: bson.ParsePath("a")}, {Path: bson.ParsePath("b"), Desc: true}}
	values := []any{nil, 1, 1.5, "x", "x\x00y", "", doc("a", 1), list(1, "z"), true, bson.Value{Type: bson.TypeMaxKey}, bson.Value{Type: bson.TypeMinKey}, bson.Value{}}
	rapid.Check(t, func(t *rapid.T) {
		pick := rapid.SampledFrom(values)
		key := func(label string) []byte {
			var k []byte
			switch rapid.IntRange(0, 4).Draw(t, label) {
			case 0:
				k = appendDocumentKey(nil, 7, value(pick.Draw(t, "id")))
			case 1, 2:
				k = appendIndexPrefix(nil, 7, 3, keys)
				k = bson.AppendKey(k, value(pick.Draw(t, "a")), false)
				k = bson.AppendKey(k, value(pick.Draw(t, "b")), true)
				k = bson.AppendKey(k, value(pick.Draw(t, "id")), false)
			case 3:
				k = appendRetryKey(nil, [sessionLen]byte{1}, uint32(rapid.IntRange(0, 3).Draw(t, "slot")))
			case 4:
				k = appendCounterKey(nil, 7)
			}
			if rapid.Bool().Draw(t, "cut") {
				k = k[:rapid.IntRange(0, len(k)).Draw(t, "at")]
			}
			return k
		}
		a, b := key("one"), key("other")
		pa, pb := a[:split(a)], b[:split(b)]
		if split(pa) != len(pa) {
			t.Fatalf("prefix %x of %x is no prefix", pa, a)
		}
		if c, cp := comparer.Compare(a, b), comparer.Compare(pa, pb); c <= 0 && cp > 0 || cp < 0 && c >= 0 {
			t.Fatalf("%x and %x compare as %d, their prefixes as %d", a, b, c, cp)
		}
	})
}

// allocFS counts what is allocated ahead of writing.
type allocFS struct {
	vfs.FS
	bytes *atomic.Int64
}

func (fs allocFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return allocFile{f, fs.bytes}, nil
}

type allocFile struct {
	vfs.File
	bytes *atomic.Int64
}

func (f allocFile) Preallocate(_, length int64) error {
	f.bytes.Add(length)
	return nil
}

// The log takes about as much of the disk as it holds, and not as much as a full memtable.
func TestLogIsAllocatedByAndBy(t *testing.T) {
	var bytes atomic.Int64
	o := testOptions(allocFS{vfs.NewMem(), &bytes})
	o.MemTableBytes = 64 << 20
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustInsert(t, db, doc("_id", 0))
	if n := bytes.Load(); n != logStep {
		t.Errorf("%d bytes allocated for one document", n)
	}
	// As small as Pebble's memtables are at first, several logs hold these.
	pad := string(make([]byte, 64<<10))
	for n := range 40 {
		mustInsert(t, db, doc("_id", n+1, "pad", pad))
	}
	if n := bytes.Load(); n < 2*logStep || n > 6*logStep {
		t.Errorf("%d bytes allocated for 2.5 MiB in a few logs", n)
	}
}
