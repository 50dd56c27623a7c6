package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Writers, index builds and drops run, the power goes at a random moment, and the store is opened from what a disk could hold then.
func TestCrash(t *testing.T) {
	rounds := 24
	if testing.Short() {
		rounds = 6
	}
	for seed := range rounds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			crashRound(t, uint64(seed))
		})
	}
}

func crashRound(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	fs := vfs.NewCrashableMem()
	o := testOptions(fs)
	o.MemTableBytes = 256 << 10 // many flushes
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	mustIndex(t, db, doc("key", doc("w", 1, "n", -1)), doc("key", doc("u", 1), "unique", true), doc("key", doc("tags", 1)))
	writers := make([]*crashWriter, 3)
	for i := range writers {
		writers[i] = newCrashWriter(i, rng.Uint64())
	}
	ddl := &crashDDL{}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, w := range writers {
		running.Go(func() { w.run(t, db, stop) })
	}
	running.Go(func() { ddl.run(t, db, stop) })
	time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // where in the work the power goes, no matter where
	before := ddl.state()
	var floor []int
	for _, w := range writers {
		floor = append(floor, w.synced())
	}
	percent := []int{0, 20, 70, 100}[seed%4]
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	after := ddl.state()
	close(stop)
	running.Wait()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	o.FS = crashed
	db, err = Open(o)
	if err != nil {
		t.Fatalf("open after the crash: %v", err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, table := range db.Tables("") {
		v, err := table.Validate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range v.Errors {
			t.Errorf("%s: %s", table.Name(), e)
		}
	}
	if before == after {
		before.check(t, db)
	}
	found := readAll(t, db)
	for i, w := range writers {
		w.check(t, db, floor[i], found[i])
	}
	mustBeOrphanless(t, db)
}

// crashWriter writes one operation after another into documents of its own and remembers what there should be after each.
type crashWriter struct {
	number int
	rng    *rand.Rand

	mu      sync.Mutex
	states  []map[int]int // after each operation: _id → n
	ops     []crashOp
	durable int // so many operations are known to be on disk
}

// crashOp is one call, as it was sent.
type crashOp struct {
	writes []Write
}

func newCrashWriter(number int, seed uint64) *crashWriter {
	return &crashWriter{number: number, rng: rand.New(rand.NewPCG(seed, 1)), states: []map[int]int{{}}}
}

func (w *crashWriter) synced() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.durable
}

func (w *crashWriter) retry(op int) *Retry {
	return &Retry{Session: []byte(fmt.Sprint("session", w.number)), TxnNumber: int64(op)}
}

func (w *crashWriter) run(t *testing.T, db *DB, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		op, state := w.next(t)
		w.mu.Lock()
		number := len(w.ops)
		w.ops, w.states = append(w.ops, op), append(w.states, state)
		w.mu.Unlock()
		sync := w.rng.IntN(4) == 0
		rs, err := db.Write(context.Background(), op.writes, WriteOptions{Ordered: true, Sync: sync, Retry: w.retry(number)})
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range rs {
			if r.Err != nil || r.Retried {
				t.Errorf("writer %d, operation %d: %+v", w.number, number, r)
				return
			}
		}
		if sync {
			w.mu.Lock()
			w.durable = number + 1
			w.mu.Unlock()
		}
	}
}

// next makes an operation on the latest state, and the state after it.
func (w *crashWriter) next(t *testing.T) (crashOp, map[int]int) {
	state := maps.Clone(w.states[len(w.states)-1])
	number := len(w.ops)
	ids := slices.Sorted(maps.Keys(state))
	if len(ids) > 0 && w.rng.IntN(2) == 0 {
		id := ids[w.rng.IntN(len(ids))]
		one := Write{Table: testTable}
		q := Query{Filter: mustFilter(t, doc("_id", id))}
		if len(ids) > 15 || w.rng.IntN(4) == 0 {
			one.Delete = &DeleteStatement{Query: q, Return: ReturnOld}
			delete(state, id)
		} else {
			one.Update = &UpdateStatement{Query: q, Update: mustUpdate(t, doc("$inc", doc("n", 1), "$set", doc("tags", list(number%3, number%5))))}
			state[id]++
		}
		return crashOp{[]Write{one}}, state
	}
	var writes []Write
	for i := range w.rng.IntN(4) + 1 {
		id := w.number*1_000_000 + number*10 + i
		state[id] = 0
		writes = append(writes, Write{Table: testTable, Statement: int32(i), Insert: doc("_id", id, "w", w.number, "n", 0, "u", id, "pad", string(make([]byte, w.rng.IntN(2000))))})
	}
	return crashOp{writes}, state
}

// check looks for the number of operations whose state is what was found, and sends the last ones again.
func (w *crashWriter) check(t *testing.T, db *DB, floor int, found map[int]int) {
	reached, candidates := -1, 0
	for n := max(floor, 0); n < len(w.states); n++ {
		if maps.Equal(w.states[n], found) {
			reached = n
			candidates++
		}
	}
	if reached < floor {
		t.Errorf("writer %d: after the crash there is what it had after %d operations (-1: after none), %d were synced", w.number, reached, floor)
		return
	}
	if candidates > 1 {
		return // an insert and its deletion: it can't be told how far it got
	}
	// What was in the log is answered, what was not is done now; nothing is done twice.
	last := min(reached+1, len(w.ops)-1)
	for op := max(reached-1, 0); op <= last; op++ {
		rs, err := db.Write(context.Background(), w.ops[op].writes, WriteOptions{Ordered: true, Retry: w.retry(op)})
		if err != nil {
			t.Errorf("writer %d: operation %d: %v", w.number, op, err)
			return
		}
		for _, r := range rs {
			if r.Err != nil || r.Retried != (op < reached) {
				t.Errorf("writer %d: operation %d sent again, %d had been reached: %+v", w.number, op, reached, r)
			}
		}
		if got := readAll(t, db)[w.number]; !maps.Equal(got, w.states[max(reached, op+1)]) {
			t.Errorf("writer %d: wrong documents after sending operation %d again", w.number, op)
		}
	}
}

// crashDDL makes and drops an index and tables.
type crashDDL struct {
	mu  sync.Mutex
	now ddlState
}

// ddlState is what has been acknowledged; busy changes while something is under way, so that two equal states enclose none.
type ddlState struct {
	busy   int
	index  bool
	tables int // so many tables t0, t1, … were made; all but the last are dropped
}

func (d *crashDDL) state() ddlState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *crashDDL) do(t *testing.T, run func() error, set func(*ddlState)) {
	d.mu.Lock()
	d.now.busy++
	d.mu.Unlock()
	err := run()
	d.mu.Lock()
	d.now.busy++
	set(&d.now)
	d.mu.Unlock()
	if err != nil {
		t.Error(err)
	}
}

func (d *crashDDL) run(t *testing.T, db *DB, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		name := Name{"tmp", fmt.Sprint("t", n)}
		d.do(t, func() error {
			_, _, err := db.CreateIndexes(context.Background(), testTable, []bson.Document{doc("key", doc("n", 1, "tags", 1))})
			return err
		}, func(s *ddlState) { s.index = true })
		d.do(t, func() error {
			if _, _, err := db.CreateIndexes(context.Background(), name, []bson.Document{doc("key", doc("a", 1))}); err != nil {
				return err
			}
			rs, err := db.Write(context.Background(), []Write{{Table: name, Insert: doc("_id", 1, "a", list(1, 2))}}, WriteOptions{})
			if err == nil {
				err = rs[0].Err
			}
			return err
		}, func(s *ddlState) { s.tables = n + 1 })
		d.do(t, func() error {
			_, err := db.DropIndexes(testTable, []string{"n_1_tags_1"})
			return err
		}, func(s *ddlState) { s.index = false })
		if n > 0 {
			d.do(t, func() error { return db.DropTable(Name{"tmp", fmt.Sprint("t", n-1)}) }, func(*ddlState) {})
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// check compares what was acknowledged, with nothing under way, with what is there.
func (s ddlState) check(t *testing.T, db *DB) {
	if s.busy%2 != 0 {
		return
	}
	table, ok := db.Table(testTable)
	if !ok {
		t.Fatal("table lost")
	}
	if has := slices.ContainsFunc(table.Indexes(), func(ix Index) bool { return ix.Name == "n_1_tags_1" }); has != s.index {
		t.Errorf("index there: %v, acknowledged: %v", has, s.index)
	}
	for n := range s.tables - 2 { // the one before the last may be on its way out
		if _, ok := db.Table(Name{"tmp", fmt.Sprint("t", n)}); ok {
			t.Errorf("dropped table t%d is back", n)
		}
	}
	if s.tables > 0 {
		if _, ok := db.Table(Name{"tmp", fmt.Sprint("t", s.tables-1)}); !ok {
			t.Errorf("table t%d lost", s.tables-1)
		}
	}
}

// readAll returns the test table's documents by writer.
func readAll(t *testing.T, db *DB) map[int]map[int]int {
	t.Helper()
	out := map[int]map[int]int{0: {}, 1: {}, 2: {}}
	table, ok := db.Table(testTable)
	if !ok {
		return out
	}
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: table.documentPrefix, UpperBound: table.documentEnd})
	if err != nil {
		t.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		id, _ := bson.Get(it.Value(), "_id")
		n, _ := bson.Get(it.Value(), "n")
		out[int(id.Int32())/1_000_000][int(id.Int32())] = int(n.Int32())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// mustBeOrphanless waits for the remover and looks for keys of tables and indexes that the registry doesn't know.
func mustBeOrphanless(t *testing.T, db *DB) {
	t.Helper()
	waitFor(t, db, func() bool { _, pending := db.removal.first(); return !pending })
	known := map[string]bool{}
	for _, table := range db.Tables("") {
		known[string(table.documentPrefix)] = true
		known[string(appendCounterKey(nil, table.id))] = true
		for _, ix := range table.version.Load().indexes {
			known[string(ix.prefix[:partPrefixLen])] = true
		}
	}
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: []byte{kindData}, UpperBound: []byte{kindData + 1}})
	if err != nil {
		t.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		part := it.Key()[:partPrefixLen]
		if number, _, ok := readArraysKey(it.Key()); ok && part[tablePrefixLen] == partArrays>>8 {
			part = append(slices.Clone(it.Key()[:tablePrefixLen]), byte(number>>8), byte(number))
		}
		if !known[string(part)] {
			t.Errorf("key of an unknown table or index: %x", it.Key())
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustFilter(t testing.TB, d bson.Document) *query.Filter {
	t.Helper()
	f, err := query.ParseFilter(d, query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustUpdate(t *testing.T, d bson.Document) *query.Update {
	t.Helper()
	u, err := query.ParseUpdate(value(d), query.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A write that nobody waits for is on disk by itself, soon.
func TestUnsyncedWriteIsSynced(t *testing.T) {
	fs := vfs.NewCrashableMem()
	db, err := Open(testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustInsert(t, db, doc("_id", 1))
	for n := 0; n == 0; {
		o := testOptions(fs.CrashClone(vfs.CrashCloneCfg{}))
		crashed, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if table, ok := crashed.Table(testTable); ok {
			n = int(table.documents.Load())
		}
		if err := crashed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A write that was waited for is there after the crash that loses most.
func TestSyncedWriteSurvives(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := testOptions(fs)
	o.SyncInterval = time.Hour // nothing is synced but what asks for it
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustWrite(t, db, inserts(doc("_id", 1)), WriteOptions{Sync: true})
	mustWrite(t, db, inserts(doc("_id", 2)), WriteOptions{})
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	crashed, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer crashed.Close()
	mustBeWhole(t, crashed, testTable, 1)
}

// What was acknowledged is there after the process alone was killed, which loses nothing that the operating system has.
func TestAcknowledgedWriteSurvivesKill(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := testOptions(fs)
	o.SyncInterval = time.Hour
	o.MemTableBytes = 256 << 10 // several logs
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range 300 {
		mustInsert(t, db, doc("_id", n, "pad", string(make([]byte, 2000))))
		if n%50 != 0 {
			continue
		}
		killed := testOptions(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
		again, err := Open(killed)
		if err != nil {
			t.Fatal(err)
		}
		mustBeWhole(t, again, testTable, int64(n+1))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
