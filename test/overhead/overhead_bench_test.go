package overhead

import (
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
	calls   int
	spent   time.Duration
	took    []time.Duration // of each call, where latency is measured
}

// owners gives every client documents of its own.
var owners uint32

func newWay(tb testing.TB, address, collection, layout string, clients int, op operation) *way {
	w := &way{}
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
	for _, collection := range []string{"plain", "time", "hash"} {
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
	for _, layout := range []string{"plain", "time", "hash"} {
		b.Run("single/find/"+layout, func(b *testing.B) { compareSingle(b, d, layout, find) })
		b.Run("single/updateOne/"+layout, func(b *testing.B) { compareSingle(b, d, layout, updateOne) })
		b.Run("single/insertOne/"+layout, func(b *testing.B) { compareSingle(b, d, layout, insertOf(1, true)) })
	}
}

// ways are the gateway's, the relay's and the direct one.
func ways(tb testing.TB, d *deployment, layout string, clients int, op operation) (gateway, relay, direct *way) {
	return newWay(tb, d.gateway.address, layout, layout, clients, op),
		newWay(tb, d.relay.address, "plain", layout, clients, op),
		newWay(tb, d.backend.address, "plain", layout, clients, op)
}

func compare(b *testing.B, d *deployment, layout string, clients int, op operation) {
	gateway, relay, direct := ways(b, d, layout, clients, op)
	before := d.gateway.allocations(b)
	for b.Loop() {
		gateway.run(b)
		relay.run(b)
		direct.run(b)
	}
	b.ReportMetric(float64(d.gateway.allocations(b)-before)/float64(gateway.calls), "allocs/call")
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
		gateway.time(b)
		relay.time(b)
		direct.time(b)
	}
	b.ReportMetric(gateway.p50(), "gateway-µs")
	b.ReportMetric(relay.p50(), "relay-µs")
	b.ReportMetric(direct.p50(), "direct-µs")
	b.ReportMetric(gateway.p50()-direct.p50(), "added-µs")
	b.ReportMetric(0, "ns/op")
}
