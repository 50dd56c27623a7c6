package overhead

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// turn is how long one way to the backend is measured before the next: they take turns, so that what changes meanwhile changes for all.
const turn = 150 * time.Millisecond

// way is one way to the backend, with the clients on it.
type way struct {
	clients []*client
	through *process // what stands between the clients and the backend; nil: nothing
	backend *process
	used    used  // by what stands between
	all     int64 // nanoseconds of processor time of everything on the way, the clients among it
	calls   int
	spent   time.Duration
	took    []time.Duration // of each call, where latency is measured
}

// owners gives every client documents of its own.
var owners uint32

func newWay(tb testing.TB, through, backend *process, collection, layout string, clients int, op operation) *way {
	w := &way{through: through, backend: backend}
	address := cmp.Or(through, backend).address
	for range clients {
		owners++
		c := dial(tb, address)
		c.call = op(collection, layout, owners)
		w.clients = append(w.clients, c)
	}
	return w
}

// run has all clients call for a turn.
func (w *way) run(b *testing.B) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	before, all := w.usage(b)
	defer func() {
		after, allAfter := w.usage(b)
		w.used.add(after.since(before))
		w.all += allAfter - all
	}()
	start := time.Now()
	for _, c := range w.clients {
		wait.Go(func() {
			n := 0
			for time.Since(start) < turn {
				if err := c.once(); err != nil {
					b.Error(err)
					return
				}
				n++
			}
			mu.Lock()
			defer mu.Unlock()
			w.calls += n
		})
	}
	wait.Wait()
	w.spent += time.Since(start)
}

// usage is what stands between has used so far, and the processor time of everything on the way.
func (w *way) usage(b *testing.B) (between used, all int64) {
	if w.through != nil {
		between = w.through.used(b)
	}
	return between, between.nanoseconds + w.backend.used(b).nanoseconds + usedHere().nanoseconds
}

// cpu is the microseconds of processor time that a call costs on the whole way.
func (w *way) cpu() float64 { return float64(w.all) / float64(w.calls) / 1000 }

// time has the first client call for a turn and notes what each call takes.
func (w *way) time(b *testing.B) {
	for start := time.Now(); time.Since(start) < turn; {
		began := time.Now()
		if err := w.clients[0].once(); err != nil {
			b.Fatal(err)
		}
		w.took = append(w.took, time.Since(began))
	}
}

func (w *way) perSecond() float64 {
	return float64(w.calls*w.clients[0].call.documents) / w.spent.Seconds()
}

func (w *way) p50() float64 {
	slices.Sort(w.took)
	return float64(w.took[len(w.took)/2].Nanoseconds()) / 1000
}

// fill stores the documents that are there from the start.
func fill(tb testing.TB, d *deployment) {
	for _, collection := range []string{"plain", "time", "hash", "parted"} {
		c := dial(tb, d.gateway.address)
		c.call = insertOf(batch, false)(collection, collection, 0)
		for range stored / batch {
			if err := c.once(); err != nil {
				tb.Fatal(err)
			}
		}
		c.Close()
	}
}

// BenchmarkOverhead compares the three ways, in documents a second, and the medians of a single client, in microseconds. On the gateway the
// collection has the layout; straight to the backend and through the relay it is the plain one.
func BenchmarkOverhead(b *testing.B) {
	d := deploy(b)
	fill(b, d)
	for _, o := range []struct {
		name    string
		op      operation
		clients int
	}{
		{"find", find, 16},
		{"updateOne", updateOne, 16},
		{"insertOne", insertOf(1, true), 16},
		{"insert1000unordered", insertOf(batch, false), 2},
		{"insert1000ordered", insertOf(batch, true), 2},
	} {
		for _, layout := range []string{"plain", "time", "hash"} {
			b.Run(o.name+"/"+layout, func(b *testing.B) { compare(b, d, layout, o.clients, o.op) })
		}
	}
	b.Run("insert1000ordered/parted", func(b *testing.B) { compare(b, d, "parted", 2, insertOf(batch, true)) })
	for _, layout := range []string{"plain", "time", "hash"} {
		b.Run("single/find/"+layout, func(b *testing.B) { compareSingle(b, d, layout, find) })
		b.Run("single/updateOne/"+layout, func(b *testing.B) { compareSingle(b, d, layout, updateOne) })
		b.Run("single/insertOne/"+layout, func(b *testing.B) { compareSingle(b, d, layout, insertOf(1, true)) })
	}
}

// ways are the gateway's, the relay's and the direct one.
func ways(tb testing.TB, d *deployment, layout string, clients int, op operation) (gateway, relay, direct *way) {
	return newWay(tb, d.gateway, d.backend, layout, layout, clients, op),
		newWay(tb, d.relay, d.backend, "plain", layout, clients, op),
		newWay(tb, nil, d.backend, "plain", layout, clients, op)
}

// shuffled puts ways in any order, so that what one leaves to do, such as compactions, falls to the others alike.
func shuffled(ways ...*way) []*way {
	rand.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	return ways
}

func compare(b *testing.B, d *deployment, layout string, clients int, op operation) {
	gateway, relay, direct := ways(b, d, layout, clients, op)
	for b.Loop() {
		for _, w := range shuffled(gateway, relay, direct) {
			w.run(b)
		}
	}
	b.ReportMetric(float64(gateway.used.allocations)/float64(gateway.calls), "allocs/call")
	b.ReportMetric(float64(gateway.used.nanoseconds)/float64(gateway.calls)/1000, "gateway-cpu-µs")
	b.ReportMetric(float64(relay.used.nanoseconds)/float64(relay.calls)/1000, "relay-cpu-µs")
	b.ReportMetric(relay.cpu()/gateway.cpu(), "cpu-of-relay")
	b.ReportMetric(direct.cpu()/gateway.cpu(), "cpu-of-direct")
	b.ReportMetric(gateway.perSecond(), "gateway/s")
	b.ReportMetric(relay.perSecond(), "relay/s")
	b.ReportMetric(direct.perSecond(), "direct/s")
	b.ReportMetric(gateway.perSecond()/relay.perSecond(), "of-relay")
	b.ReportMetric(gateway.perSecond()/direct.perSecond(), "of-direct")
	b.ReportMetric(0, "ns/op")
}

func compareSingle(b *testing.B, d *deployment, layout string, op operation) {
	gateway, relay, direct := ways(b, d, layout, 1, op)
	for b.Loop() {
		for _, w := range shuffled(gateway, relay, direct) {
			w.time(b)
		}
	}
	b.ReportMetric(gateway.p50(), "gateway-µs")
	b.ReportMetric(relay.p50(), "relay-µs")
	b.ReportMetric(direct.p50(), "direct-µs")
	b.ReportMetric(gateway.p50()-direct.p50(), "added-µs")
	b.ReportMetric(0, "ns/op")
}
