package oxbow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/command"
)

// powerLayouts are the collections of a gateway whose power goes: documents are written to days, kept is emptied by retention, turned has its
// partitions hidden, brought back and dropped, gone is dropped whole.
const powerLayouts = `
backends: {local: {embedded: data, cache: 8MiB, memtable: 1MiB}}
collections:
  d.days:   {time: {field: at, every: day}, hash: {field: h, count: 2}}
  d.kept:   {time: {field: at, every: minute, as: database}, keep: 1s, hold: 0s, late: recreate}
  d.turned: {time: {field: at, every: day}, hash: {field: h, count: 2}}
  d.gone:   {hash: {field: h, count: 4}}
`

// Everything at once, and the power goes at a random moment: writes that are sent again, index builds, drops of collections and databases, retention,
// partitions that are turned, users that are made and dropped. What a disk could hold then must open, be whole, and hold what was acknowledged as
// synced.
func TestPowerFailure(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for seed := range rounds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { powerRound(t, uint64(seed)) })
	}
}

func powerRound(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	fs := vfs.NewCrashableMem()
	p := openPowered(t, fs)
	workers := []worker{&indexer{}, &dropper{}, &databaser{}, &registrar{users: map[string]string{}}, &turner{}, &keeper{}}
	for i := range 2 {
		w := &powerWriter{number: i, states: []map[string]int{{}}}
		workers = append(workers, w)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, w := range workers {
		own := rand.New(rand.NewPCG(seed, uint64(i)+10))
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.step(p, own)
				}
			}
		})
	}
	time.Sleep(time.Duration(50+rng.IntN(400)) * time.Millisecond) // where in the work the power goes, no matter where
	for _, w := range workers {
		w.before()
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[seed%4], RNG: rng})
	for _, w := range workers {
		w.after()
	}
	close(stop)
	running.Wait()
	p.close()

	again := openPowered(t, crashed)
	defer again.close()
	again.mustBeWhole()
	for _, w := range workers {
		w.check(again)
	}
}

// worker does one thing after another, and knows what of it must be there.
type worker interface {
	step(p *powered, rng *rand.Rand)
	before() // the disk is about to be looked at
	after()  // it has been
	check(p *powered)
}

// powered is a gateway on a file system that can lose its power.
type powered struct {
	*Gateway
	t   *testing.T
	log *lines
}

// lines are a gateway's log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func openPowered(t *testing.T, fs vfs.FS) *powered {
	t.Helper()
	log := &lines{}
	g, err := Open(context.Background(), Options{
		Config: []byte(powerLayouts), Listen: "127.0.0.1:0", UpkeepEvery: 5 * time.Millisecond, Log: slog.NewTextHandler(log, nil), fs: fs,
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &powered{Gateway: g, t: t, log: log}
}

func (p *powered) close() {
	p.t.Helper()
	if err := p.Close(context.Background()); err != nil {
		p.t.Errorf("close: %v", err)
	}
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "could not be finished") || strings.Contains(line, "does not know it") {
			p.t.Errorf("the log: %s", line)
		}
	}
}

// ask runs a command as a client of its own would.
func (p *powered) ask(database, name string, argument any, fields ...driver.E) driver.M {
	p.t.Helper()
	body, err := driver.Marshal(append(driver.D{{Key: name, Value: argument}, {Key: "$db", Value: database}}, fields...))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	var reply command.Reply
	p.table.Run(context.Background(), &command.Request{Body: body, Conn: &command.Conn{ID: 1}}, &reply)
	doc := []byte(reply.Document)
	if doc == nil {
		doc = reply.Elements
	}
	var answer driver.M
	if err := driver.Unmarshal(doc, &answer); err != nil {
		p.t.Errorf("%s: %v", name, err)
	}
	return answer
}

// must is ask for what has to succeed.
func (p *powered) must(database, name string, argument any, fields ...driver.E) driver.M {
	p.t.Helper()
	answer := p.ask(database, name, argument, fields...)
	if err := failure(answer); err != "" {
		p.t.Errorf("%s %v: %s", name, argument, err)
	}
	return answer
}

// failure is what went wrong in an answer, "" for nothing.
func failure(answer driver.M) string {
	if answer["ok"] != 1.0 {
		return fmt.Sprint(answer["codeName"], ": ", answer["errmsg"])
	}
	if errs := answer["writeErrors"]; errs != nil {
		return fmt.Sprint(errs)
	}
	return ""
}

// all returns the documents of a cursor's first batch.
func all(answer driver.M) (docs []driver.M) {
	cursor, _ := answer["cursor"].(driver.D)
	for _, e := range cursor {
		if e.Key != "firstBatch" {
			continue
		}
		for _, d := range e.Value.(driver.A) {
			m := driver.M{}
			for _, f := range d.(driver.D) {
				m[f.Key] = f.Value
			}
			docs = append(docs, m)
		}
	}
	return docs
}

func field(key string, value any) driver.E { return driver.E{Key: key, Value: value} }

var (
	synced  = field("writeConcern", driver.D{{Key: "w", Value: "majority"}})
	entire  = field("batchSize", int64(1)<<40)
	cursors = field("cursor", driver.D{{Key: "batchSize", Value: int64(1) << 40}})
)

// mustBeWhole compares indexes with documents and partitions with the catalog, once what was cut short is finished.
func (p *powered) mustBeWhole() {
	p.t.Helper()
	p.runner.Pass(context.Background())
	if stray := p.catalog.Stray(); len(stray) > 0 {
		p.t.Errorf("collections that the catalog does not know: %v", stray)
	}
	indexes := map[string]string{} // by partition
	for _, name := range []string{"days", "kept", "turned", "gone"} {
		for _, part := range all(p.must("d", "listPartitions", name, cursors)) {
			if state := part["state"]; name != "kept" && state != "active" && state != "hidden" {
				p.t.Errorf("partition %v is %v", part["name"], state)
			}
			indexes[part["name"].(string)] = p.indexes("d", name)
		}
	}
	for _, database := range within(p.must("admin", "listDatabases", 1, field("showPartitions", true)), "databases") {
		name := database["name"].(string)
		if name == "oxbow" {
			continue
		}
		for _, c := range all(p.must(name, "listCollections", 1, field("showPartitions", true), cursors)) {
			p.mustBeValid(name, c["name"].(string))
			ns := name + "." + c["name"].(string)
			if want, ok := indexes[ns]; ok && !strings.Contains(ns, "kept") && p.indexes(name, c["name"].(string)) != want {
				p.t.Errorf("partition %s has the indexes %s, its collection %s", ns, p.indexes(name, c["name"].(string)), want)
			}
		}
	}
}

func (p *powered) mustBeValid(database, collection string) {
	p.t.Helper()
	answer := p.ask(database, "validate", collection)
	if answer["ok"] != 1.0 && (answer["codeName"] == "NamespaceNotFound" || answer["codeName"] == "QueryPlanKilled") {
		return // retention is at work: it was dropped before it was looked at, or meanwhile
	}
	if answer["ok"] != 1.0 || answer["valid"] != true {
		p.t.Errorf("%s.%s: %v", database, collection, answer)
	}
}

// indexes lists a collection's indexes by name.
func (p *powered) indexes(database, collection string) string {
	answer := p.ask(database, "listIndexes", collection, cursors)
	var names []string
	for _, spec := range all(answer) {
		names = append(names, spec["name"].(string))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// within returns the documents of an array in an answer.
func within(answer driver.M, key string) (docs []driver.M) {
	list, _ := answer[key].(driver.A)
	for _, d := range list {
		m := driver.M{}
		for _, f := range d.(driver.D) {
			m[f.Key] = f.Value
		}
		docs = append(docs, m)
	}
	return docs
}
