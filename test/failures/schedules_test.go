package failures

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oxbow/internal/mongoerr"
)

var (
	schedules = flag.Int("schedules", 24, "how many random schedules of failures are run")
	seed      = flag.Uint64("seed", 0, "of the first schedule; 0: another one each time")
	parallel  = flag.Int("parallel-schedules", 6, "how many schedules run at a time")
)

// TestSchedules runs random failures under load and looks for an order of all that was done that explains all that clients were told.
func TestSchedules(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seeds from %d", first)
	var total report
	var running sync.WaitGroup
	for i := range *parallel {
		running.Go(func() {
			for n := i; n < *schedules; n += *parallel {
				t.Run(fmt.Sprint(first+uint64(n)), func(t *testing.T) { total.add(runSchedule(t, first+uint64(n))) })
			}
		})
	}
	running.Wait()
	t.Log(total.String())
}

// report is what schedules came to. Safe for concurrent use.
type report struct {
	mu                                        sync.Mutex
	schedules, failures, rollbacks, elections int
	operations, acknowledged, unknown         int
	errs                                      map[string]int
	faults                                    map[string]int
}

func (r *report) add(o *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs, r.faults = map[string]int{}, map[string]int{}
	}
	r.schedules++
	r.rollbacks += o.rollbacks
	r.elections += o.elections
	r.operations += len(o.history.ops)
	r.acknowledged += o.history.acknowledged
	r.unknown += o.history.unknown
	for k, n := range o.history.errs {
		r.errs[k] += n
	}
	for _, f := range o.faults {
		r.faults[f]++
		r.failures++
	}
}

func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules with %d failures, %d elections and %d rollbacks: %d operations on documents, of the writes %d acknowledged and %d unknown\n",
		r.schedules, r.failures, r.elections, r.rollbacks, r.operations, r.acknowledged, r.unknown)
	for _, m := range []map[string]int{r.faults, r.errs} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %6d %s\n", m[k], k)
		}
	}
	return b.String()
}

// outcome is what one schedule came to.
type outcome struct {
	history              *history
	faults               []string
	rollbacks, elections int
}

// schedule is one run of failures under load.
type schedule struct {
	t        *testing.T
	rng      *rand.Rand
	sets     []*set
	gateways []*gateway
	history  *history
	faults   []string
	restarts sync.WaitGroup
}

// Sizes of a schedule.
const (
	workers    = 4
	stepsEach  = 14
	failuresIn = 10
)

func runSchedule(t *testing.T, seed uint64) *outcome {
	s := &schedule{t: t, rng: rand.New(rand.NewPCG(seed, 1)), history: newHistory()}
	for i := range 1 + s.rng.IntN(2) {
		one := newSet(t, []string{"one", "two"}[i], 3)
		one.modern, one.pool = s.rng.IntN(3) > 0, 1+s.rng.IntN(4) // so few that a slow member exhausts them
		s.sets = append(s.sets, one)
	}
	base := (time.Now().Unix()/3600 - 4) * 3600
	s.gateways = append(s.gateways, newGateway(t, "a", s.sets))
	s.prepare(base)
	if s.rng.IntN(4) > 0 {
		s.gateways = append(s.gateways, newGateway(t, "b", s.sets))
	}
	s.history.began = time.Now()
	stop := make(chan struct{})
	done, cancel := context.WithCancel(context.Background())
	cancel() // clients leave without a word
	var load, failing sync.WaitGroup
	for i := range workers {
		w := &worker{id: i + 1, client: connect(t, i > 0, s.gateways...), history: s.history, rng: rand.New(rand.NewPCG(seed, uint64(i)+2)), base: base}
		load.Go(func() {
			for range stepsEach {
				w.step(context.Background())
			}
		})
		defer w.client.Disconnect(done)
	}
	failing.Go(func() { s.fail(stop) })
	load.Wait()
	close(stop)
	failing.Wait()
	s.heal()
	s.readAll(base)
	s.judge(seed)
	o := &outcome{history: s.history, faults: s.faults}
	for _, one := range s.sets {
		o.rollbacks += one.rollbacks
		o.elections += one.term
	}
	for _, g := range s.gateways {
		g.close()
	}
	return o
}

// prepare has all partitions made, and leaves the collections empty.
func (s *schedule) prepare(base int64) {
	client := connect(s.t, true, s.gateways[0])
	defer client.Disconnect(s.t.Context())
	w := &worker{base: base}
	for _, name := range collections {
		c := client.Database(database).Collection(name)
		var docs []any
		for id := range documents {
			docs = append(docs, w.document(id))
		}
		if _, err := c.InsertMany(s.t.Context(), docs); err != nil {
			s.t.Fatalf("prepare %s: %v", name, err)
		}
		if _, err := c.DeleteMany(s.t.Context(), map[string]any{}); err != nil {
			s.t.Fatalf("prepare %s: %v", name, err)
		}
	}
}

// fail lets failures happen at random moments until the load is over.
func (s *schedule) fail(stop chan struct{}) {
	for range failuresIn {
		select {
		case <-stop:
			return
		case <-time.After(rand.N(60 * time.Millisecond)):
		}
		s.failOnce()
	}
}

// stateChanges are the state changes that members tell.
var stateChanges = []mongoerr.Code{
	mongoerr.NotWritablePrimary, mongoerr.PrimarySteppedDown, mongoerr.ShutdownInProgress, mongoerr.InterruptedAtShutdown,
	mongoerr.InterruptedDueToReplState, mongoerr.NotPrimaryNoSecondaryOk, mongoerr.NotPrimaryOrSecondary,
}

// failOnce lets one thing go wrong.
func (s *schedule) failOnce() {
	one := s.sets[s.rng.IntN(len(s.sets))]
	m := one.primary()
	if s.rng.IntN(5) == 0 {
		m = one.members[s.rng.IntN(len(one.members))]
	}
	lasts := time.Duration(s.rng.IntN(150)) * time.Millisecond
	switch n := s.rng.IntN(20); n {
	case 0, 1:
		s.note("step down")
		m.stepDown(lasts)
	case 2, 3:
		s.note("kill")
		m.down()
		s.later(lasts, m.comeUp)
	case 4:
		s.note("stall")
		m.change(func() { m.stalled = true })
		s.later(lasts*3, func() {
			if lasts.Milliseconds()%2 == 0 {
				m.down() // what it was asked meanwhile is never answered
				m.comeUp()
			}
			m.change(func() { m.stalled = false })
		})
	case 5:
		s.note("slow")
		m.change(func() { m.slow = time.Duration(s.rng.IntN(20)) * time.Millisecond })
		s.later(lasts, func() { m.change(func() { m.slow = 0 }) })
	case 6:
		s.note("refuse connections")
		m.refuse(true)
		s.later(lasts, func() { m.refuse(false) })
	case 7, 8:
		s.note("cut off from the other members")
		m.change(func() { m.side = 1 + m.id })
		s.later(lasts, func() { m.change(func() { m.side = 0 }) })
	case 9:
		g := s.gateways[s.rng.IntN(len(s.gateways))]
		app := g.app
		s.note("cut off from a gateway")
		one.sever(app, true)
		s.later(lasts, func() { one.sever(app, false) })
	case 10, 11, 12:
		s.killGateway(s.gateways[s.rng.IntN(len(s.gateways))], lasts)
	default:
		s.failNext(m)
	}
}

// failNext lets the member's next commands fail, some of them.
func (s *schedule) failNext(m *member) {
	var next []fault
	for range 1 + s.rng.IntN(6) {
		f := fault{kind: faultKind(s.rng.IntN(7)), code: stateChanges[s.rng.IntN(len(stateChanges))]}
		next = append(next, f)
		if f.kind != none {
			s.note(f.kind.String())
		}
	}
	m.change(func() { m.faults = append(m.faults, next...) })
}

func (s *schedule) note(what string) {
	s.faults = append(s.faults, what)
}

func (s *schedule) later(after time.Duration, do func()) {
	s.restarts.Go(func() {
		time.Sleep(after)
		do()
	})
}

// killGateway kills a gateway and starts it again.
func (s *schedule) killGateway(g *gateway, after time.Duration) {
	if g.open == nil {
		return
	}
	s.faults = append(s.faults, "kill a gateway")
	g.kill()
	s.later(after, func() {
		for g.start(context.Background()) != nil {
			// The deployment that holds the catalog has failures of its own.
		}
	})
}

// heal ends all failures.
func (s *schedule) heal() {
	for _, one := range s.sets {
		one.heal()
	}
	s.restarts.Wait()
	for _, one := range s.sets {
		one.heal()
	}
}

// readAll reads every document, when nothing fails any more.
func (s *schedule) readAll(base int64) {
	client := connect(s.t, true, s.gateways...)
	defer client.Disconnect(s.t.Context())
	w := &worker{id: workers + 1, client: client, history: s.history, rng: s.rng, base: base}
	for _, name := range collections {
		for id := range documents {
			c, k := client.Database(database).Collection(name), key{name, id}
			tries := 0
			for !w.read(s.t.Context(), c, k, s.history.now()) {
				if tries++; tries == 20 {
					s.t.Fatalf("%v cannot be read after the failures: %v", k, s.history.errs)
				}
			}
		}
	}
}

// judge checks the history.
func (s *schedule) judge(seed uint64) {
	wrong, undecided := check(s.history.ops)
	if undecided > 0 {
		s.t.Errorf("seed %d: the histories of %d documents could not be decided", seed, undecided)
	}
	for _, k := range wrong {
		s.t.Errorf("seed %d: nothing explains what clients were told of %v:\n%s", seed, k, s.history.of(k))
	}
}

// of prints the operations on one document in the order of their calls.
func (h *history) of(k key) string {
	var b strings.Builder
	ops := slices.Clone(h.ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range ops {
		in, out := op.Input.(input), op.Output.(output)
		if in.key != k {
			continue
		}
		end := "unknown"
		if op.Return != never {
			end = fmt.Sprint(time.Duration(op.Return).Round(time.Microsecond))
		}
		fmt.Fprintf(&b, "  client %d  %v – %s  %v(%d)", op.ClientId, time.Duration(op.Call).Round(time.Microsecond), end, in.kind, in.value)
		if out.told {
			fmt.Fprintf(&b, " = %v %d", out.done, out.value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
