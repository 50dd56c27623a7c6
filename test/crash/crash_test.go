package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

var (
	rounds = flag.Int("rounds", 8, "how often the server is killed")
	seed   = flag.Uint64("seed", 0, "of the writers' choices and the times between kills; 0: another one each time")
)

// rig is a server and all that works on it.
type rig struct {
	*server
	clients  []*mongo.Client
	client   *mongo.Client // of the checks
	writers  []*writer
	counters map[string]*counters // by collection
	operator *operator

	// gate is held for reading during each write, for writing during the checks.
	gate sync.RWMutex
	stop chan struct{}
	all  sync.WaitGroup
}

func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 1))
	r := newRig(t, rng)
	for n := range *rounds {
		before := r.total()
		if n > 0 && n%20 == 0 {
			t.Logf("%d rounds done, %d writes acknowledged", n, before)
		}
		time.Sleep(between(rng, 20*time.Millisecond, 600*time.Millisecond)) // where in the work the kill falls, no matter where
		r.kill(t)
		r.start(t)
		if n%3 == 2 {
			time.Sleep(between(rng, 0, 200*time.Millisecond))
			r.kill(t)
			r.start(t)
		}
		r.awaitServing(t)
		r.gate.Lock()
		r.check(t, fmt.Sprint("round ", n))
		r.gate.Unlock()
		if t.Failed() {
			break
		}
		if r.total() == before {
			t.Errorf("round %d: nothing was written", n)
		}
	}
	close(r.stop)
	r.all.Wait()
	r.report(t)
	for _, client := range r.clients { // while there is a server to say good-bye to
		client.Disconnect(context.Background())
	}
	r.kill(t)
}

// newRig starts a server and writers on each collection: two that send writes again, one that does not.
func newRig(t *testing.T, rng *rand.Rand) *rig {
	t.Helper()
	r := &rig{server: newServer(t), counters: map[string]*counters{}, stop: make(chan struct{})}
	r.start(t)
	r.awaitServing(t)
	r.client = r.connect(t, true)
	again, once := r.connect(t, true), r.connect(t, false)
	r.clients = []*mongo.Client{r.client, again, once}
	base := time.Now().UTC().Truncate(time.Minute)
	for _, name := range []string{"plain", "minutes", "hashed", "both", "own", "kept"} {
		c := newCounters(base)
		if name != "kept" { // there its document would go
			r.counters[name] = c
		}
		for i := range 3 {
			client := again
			if i == 2 {
				client = once
			}
			w := &writer{
				name: fmt.Sprintf("%s%d", name, i), collection: client.Database("crash").Collection(name), base: base, kept: name == "kept",
				rng: rand.New(rand.NewPCG(rng.Uint64(), 2)), retries: i != 2, counters: r.counters[name], docs: map[string][]state{},
			}
			r.writers = append(r.writers, w)
			r.run(func() { w.step(t) })
		}
	}
	r.operator = newOperator(once, base, rand.New(rand.NewPCG(rng.Uint64(), 3)))
	r.run(func() { r.operator.step(t) })
	return r
}

// run repeats a step until the test stops.
func (r *rig) run(step func()) {
	r.all.Go(func() {
		for {
			select {
			case <-r.stop:
				return
			default:
			}
			r.gate.RLock()
			step()
			r.gate.RUnlock()
		}
	})
}

// total is the number of acknowledged writes.
func (r *rig) total() (n int) {
	for _, w := range r.writers {
		n += int(w.done.Load())
	}
	return n
}

func (r *rig) report(t *testing.T) {
	var again, once int64
	for _, w := range r.writers {
		if w.retries {
			again += w.failed.Load()
		} else {
			once += w.failed.Load()
		}
	}
	t.Logf("%d rounds, %d writes acknowledged; failed and looked at afterwards: %d of writers that send again (multi-document writes and second kills), %d of those that don't; operator: %d done, %d cut off",
		*rounds, r.total(), again, once, r.operator.done, r.operator.cut)
}
