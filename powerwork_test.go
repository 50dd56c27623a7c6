package oxbow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// settled tells whether nothing was under way while the disk was looked at: only then what was acknowledged is all that can be there.
type settled struct {
	mu          sync.Mutex
	busy        int
	from, until int
}

func (s *settled) do(work, done func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	work()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	done()
}

func (s *settled) before() { s.mu.Lock(); defer s.mu.Unlock(); s.from = s.busy }
func (s *settled) after()  { s.mu.Lock(); defer s.mu.Unlock(); s.until = s.busy }
func (s *settled) is() bool {
	return s.from == s.until && s.from%2 == 0
}

// powerWriter writes to d.days, one command after another, each of which the engine takes as one batch; so what is there afterwards is what was
// there after one of them.
type powerWriter struct {
	number int

	mu       sync.Mutex
	states   []map[string]int // after each command: n by _id
	commands [][]driver.E     // as they were sent
	syncedTo int              // so many are known to be on disk
	floor    int              // when the disk was looked at
}

func (w *powerWriter) before() { w.mu.Lock(); defer w.mu.Unlock(); w.floor = w.syncedTo }
func (w *powerWriter) after()  {}

func (w *powerWriter) session(n int) []driver.E {
	id := make([]byte, 16)
	copy(id, fmt.Sprint("writer", w.number))
	return []driver.E{
		field("lsid", driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: id}}}), field("txnNumber", int64(n)),
	}
}

func powerDay(n int) time.Time { return time.Date(2024, 5, 1+n%3, n%24, 0, 0, 0, time.UTC) }

// next makes a command on the latest state, and the state after it.
func (w *powerWriter) next(rng *rand.Rand) (cmd []driver.E, state map[string]int) {
	n := len(w.commands)
	state = maps.Clone(w.states[n])
	ids := slices.Sorted(maps.Keys(state))
	if len(ids) > 0 && rng.IntN(2) == 0 {
		id := ids[rng.IntN(len(ids))]
		q := driver.D{{Key: "_id", Value: id}}
		if len(ids) > 20 || rng.IntN(3) == 0 {
			delete(state, id)
			return []driver.E{field("delete", "days"), field("deletes", driver.A{driver.D{{Key: "q", Value: q}, {Key: "limit", Value: 1}}})}, state
		}
		state[id]++
		u := driver.D{{Key: "$inc", Value: driver.D{{Key: "n", Value: 1}}}}
		return []driver.E{field("update", "days"), field("updates", driver.A{driver.D{{Key: "q", Value: q}, {Key: "u", Value: u}}})}, state
	}
	var docs driver.A
	for i := range rng.IntN(5) + 1 {
		id := fmt.Sprintf("w%d-%06d-%d", w.number, n, i)
		state[id] = 0
		docs = append(docs, driver.D{{Key: "_id", Value: id}, {Key: "w", Value: w.number}, {Key: "n", Value: 0}, {Key: "h", Value: i}, {Key: "at", Value: powerDay(n + i)},
			{Key: "tags", Value: driver.A{n % 3, i}}, {Key: "pad", Value: string(make([]byte, rng.IntN(3000)))}})
	}
	return []driver.E{field("insert", "days"), field("documents", docs)}, state
}

func (w *powerWriter) step(p *powered, rng *rand.Rand) {
	cmd, state := w.next(rng)
	n := len(w.commands)
	w.mu.Lock()
	w.commands, w.states = append(w.commands, cmd), append(w.states, state)
	w.mu.Unlock()
	fields := append(slices.Clone(cmd[1:]), w.session(n)...)
	sync := rng.IntN(3) == 0
	if sync {
		fields = append(fields, synced)
	}
	answer := p.must("d", cmd[0].Key, cmd[0].Value, fields...)
	if got := answer["retriedStmtIds"]; got != nil {
		p.t.Errorf("writer %d: command %d was taken for one sent again: %v", w.number, n, answer)
	}
	if sync && failure(answer) == "" {
		w.mu.Lock()
		w.syncedTo = n + 1
		w.mu.Unlock()
	}
}

func (w *powerWriter) found(p *powered) map[string]int {
	found := map[string]int{}
	for _, d := range all(p.must("d", "find", "days", field("filter", driver.D{{Key: "w", Value: w.number}}), entire)) {
		id := d["_id"].(string)
		if _, twice := found[id]; twice {
			p.t.Errorf("%s is there twice", id)
		}
		found[id] = int(d["n"].(int32))
	}
	return found
}

// check looks for the command after which there was what is there, and sends the last ones again: nothing is lost and nothing done twice.
func (w *powerWriter) check(p *powered) {
	found := w.found(p)
	reached, candidates := -1, 0
	for n := w.floor; n < len(w.states); n++ {
		if maps.Equal(w.states[n], found) {
			reached, candidates = n, candidates+1
		}
	}
	if reached < 0 {
		p.t.Errorf("writer %d: of %d commands %d were synced, and what is there is what was there after none of them", w.number, len(w.commands), w.floor)
		return
	}
	if candidates > 1 {
		return // an insert and its deletion: how far it got can't be told
	}
	for n := max(reached-1, 0); n <= min(reached, len(w.commands)-1); n++ {
		cmd := w.commands[n]
		p.must("d", cmd[0].Key, cmd[0].Value, append(slices.Clone(cmd[1:]), w.session(n)...)...)
		if want := w.states[max(reached, n+1)]; !maps.Equal(w.found(p), want) {
			p.t.Errorf("writer %d: command %d sent again, %d had been reached: wrong documents", w.number, n, reached)
		}
	}
}

// indexer makes and drops an index that others write to.
type indexer struct {
	settled
	there bool
}

func (w *indexer) step(p *powered, rng *rand.Rand) {
	w.do(func() {
		if w.there {
			p.must("d", "dropIndexes", "days", field("index", "extra"))
			return
		}
		p.must("d", "createIndexes", "days", field("indexes", driver.A{driver.D{{Key: "name", Value: "extra"}, {Key: "key", Value: driver.D{{Key: "tags", Value: 1}, {Key: "n", Value: -1}}}}}))
	}, func() { w.there = !w.there })
	time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond) // nothing waits for it: it only spreads the work
}

func (w *indexer) check(p *powered) {
	if !w.is() {
		return
	}
	// w.there has gone on since: its parity at the time tells.
	there := w.from/2%2 == 1
	if got := p.indexes("d", "days"); (got == "_id_ extra") != there {
		p.t.Errorf("the indexes are %q; the last one acknowledged was there: %v", got, there)
	}
}

// dropper fills d.gone and drops it.
type dropper struct {
	settled
	generation int
	full       bool
	last       [2]int // generation and whether it was full, when the disk was looked at
}

func (w *dropper) step(p *powered, _ *rand.Rand) {
	if w.full {
		w.do(func() { p.must("d", "drop", "gone") }, func() { w.full = false })
		return
	}
	var docs driver.A
	for i := range 8 {
		docs = append(docs, driver.D{{Key: "_id", Value: fmt.Sprint(w.generation, "-", i)}, {Key: "h", Value: i}, {Key: "g", Value: w.generation + 1}})
	}
	w.do(func() { p.must("d", "insert", "gone", field("documents", docs), synced) }, func() { w.generation, w.full = w.generation+1, true })
}

func (w *dropper) before() {
	w.settled.before()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = [2]int{w.generation, 0}
	if w.full {
		w.last[1] = 8
	}
}

func (w *dropper) check(p *powered) {
	docs := all(p.must("d", "find", "gone", entire))
	generations := map[any]int{}
	for _, d := range docs {
		generations[d["g"]]++
	}
	if len(generations) > 1 || len(docs) != 0 && len(docs) != 8 {
		p.t.Errorf("after a drop there are documents of several fillings: %v", generations)
	}
	if w.is() && len(docs) != w.last[1] {
		p.t.Errorf("%d documents of a collection that is dropped now and then, %d were acknowledged", len(docs), w.last[1])
	}
}

// databaser fills a database of plain collections and drops it.
type databaser struct {
	settled
	full bool
}

func (w *databaser) step(p *powered, rng *rand.Rand) {
	w.do(func() {
		if w.full {
			p.must("e", "dropDatabase", 1)
			return
		}
		for _, c := range []string{"a", "b", "c"} {
			p.must("e", "createIndexes", c, field("indexes", driver.A{driver.D{{Key: "name", Value: "x_1"}, {Key: "key", Value: driver.D{{Key: "x", Value: 1}}}, {Key: "unique", Value: true}}}))
			p.must("e", "insert", c, field("documents", driver.A{driver.D{{Key: "x", Value: rng.Int64()}}}), synced)
		}
	}, func() { w.full = !w.full })
}

func (w *databaser) check(p *powered) {
	if !w.is() {
		return
	}
	want := 0
	if w.from/2%2 == 1 {
		want = 3
	}
	if got := len(all(p.must("e", "listCollections", 1, cursors))); got != want {
		p.t.Errorf("%d collections of a database that is dropped now and then, want %d", got, want)
	}
}

// registrar makes, changes and drops users.
type registrar struct {
	settled
	users map[string]string // roles by name
	last  map[string]string
}

func (w *registrar) before() {
	w.settled.before()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = maps.Clone(w.users)
}

func (w *registrar) step(p *powered, rng *rand.Rand) {
	name, role := fmt.Sprint("u", rng.IntN(4)), []string{"read", "readWrite", "dbAdmin"}[rng.IntN(3)]
	roles := field("roles", driver.A{role})
	_, there := w.users[name]
	switch {
	case !there:
		w.do(func() {
			p.must("d", "createUser", name, field("pwd", "tide"), roles, field("mechanisms", driver.A{"SCRAM-SHA-256"}))
		}, func() { w.users[name] = role })
	case rng.IntN(2) == 0:
		w.do(func() { p.must("d", "updateUser", name, roles) }, func() { w.users[name] = role })
	default:
		w.do(func() { p.must("d", "dropUser", name) }, func() { delete(w.users, name) })
	}
}

func (w *registrar) check(p *powered) {
	if !w.is() {
		return
	}
	got := map[string]string{}
	for _, u := range within(p.must("d", "usersInfo", 1), "users") {
		for _, r := range u["roles"].(driver.A) {
			got[u["user"].(string)] = r.(driver.D)[0].Value.(string)
		}
	}
	if !maps.Equal(got, w.last) {
		p.t.Errorf("the users are %v, acknowledged were %v", got, w.last)
	}
}

// turner makes partitions of d.turned and hides, brings back and drops them, an undo and a drop at once among it.
type turner struct{ settled }

func (w *turner) step(p *powered, rng *rand.Rand) {
	parts := all(p.must("d", "listPartitions", "turned", cursors))
	if len(parts) < 4 {
		day := powerDay(rng.IntN(3))
		answer := p.ask("d", "insert", "turned", field("documents", driver.A{driver.D{{Key: "at", Value: day}, {Key: "h", Value: 0}}, driver.D{{Key: "at", Value: day}, {Key: "h", Value: 1}}}))
		if answer["ok"] != 1.0 {
			p.t.Errorf("insert: %v", answer)
		}
		return
	}
	name := parts[rng.IntN(len(parts))]["name"]
	var both sync.WaitGroup
	for _, command := range [][]string{{"hidePartition"}, {"hidePartition", "undoPartition"}, {"hidePartition", "undoPartition", "dropPartition"}, {"undoPartition", "dropPartition"}}[rng.IntN(4)] {
		both.Go(func() {
			answer := p.ask("d", command, "turned", field("partition", name))
			if answer["ok"] != 1.0 && answer["codeName"] != "NamespaceNotFound" && answer["codeName"] != "IllegalOperation" {
				p.t.Errorf("%s: %v", command, answer)
			}
		})
	}
	both.Wait()
}

func (w *turner) check(*powered) {}

// keeper writes to a collection whose partitions retention takes away at once.
type keeper struct{ settled }

func (w *keeper) step(p *powered, rng *rand.Rand) {
	at := time.Now().Add(-time.Duration(rng.IntN(5)) * time.Minute)
	p.must("d", "insert", "kept", field("documents", driver.A{driver.D{{Key: "at", Value: at}}}))
}

func (w *keeper) check(*powered) {}
