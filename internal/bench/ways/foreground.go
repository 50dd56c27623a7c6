package ways

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/bench"
)

// document is what an update knows of one.
type document struct {
	id   bson.ObjectID
	time time.Time
}

// foreground is the load that a way must not disturb.
type foreground struct {
	options Options
	data    *Data
	place   *Place
	start   time.Time
	inserts *bench.Pacer // nil: none
	updates *bench.Pacer
	crew    *bench.Crew
	stop    context.CancelFunc
	fresh   *bench.Recent[document]

	mu      sync.Mutex
	running []time.Time // by worker: when the call that it makes was meant to begin; zero: none
	ended   endings
	windows []window // by when calls were meant to begin
	totals  totals
	errors  bench.Errors
}

// window is the calls that were meant to begin in one part of the time.
type window struct {
	micros            []int32
	inserted, updated int64
}

// totals are documents so far.
type totals struct {
	inserted, updated, unmatched, failed int64
}

// windowLength is the length of a window.
const windowLength = 250 * time.Millisecond

// startForeground begins with the load; it goes on until end is called.
func startForeground(ctx context.Context, o Options, d *Data, p *Place) *foreground {
	running, stop := context.WithCancel(ctx)
	f := &foreground{options: o, data: d, place: p, start: time.Now(), crew: bench.NewCrew(ctx), stop: stop, errors: make(bench.Errors)}
	f.fresh = newFresh(o)
	f.running = make([]time.Time, 2*o.Workers)
	if o.Inserts > 0 {
		f.inserts = bench.NewPacer(f.start, 60*o.Inserts, o.Batch, 0)
	}
	if o.Updates > 0 {
		f.updates = bench.NewPacer(f.start, 60*o.Updates, o.UpdateBatch, 0)
	}
	for i := range o.Workers {
		f.spawn(running, f.inserts, 2*i, f.insert)
		f.spawn(running, f.updates, 2*i+1, f.update)
	}
	go f.crew.Finish(running, 0)
	return f
}

// newFresh remembers the documents that updates of new ones reach back to.
func newFresh(o Options) *bench.Recent[document] {
	return bench.NewRecent[document](max(o.Batch, int(float64(o.Inserts)*o.Recent.Seconds())))
}

// end stops the load and waits for the calls that were begun.
func (f *foreground) end() {
	f.stop()
	<-f.crew.Done()
}

func (f *foreground) spawn(ctx context.Context, p *bench.Pacer, worker int, call func(context.Context, *rand.Rand, int64) (inserted, updated bench.Outcome)) {
	if p == nil {
		return
	}
	random := rand.New(rand.NewPCG(uint64(worker), uint64(f.start.UnixNano())))
	f.crew.Spawn(ctx, p, func(ctx context.Context, n int64, meant time.Time) {
		f.begin(worker, meant)
		inserted, updated := call(ctx, random, n)
		f.count(worker, meant, time.Now(), inserted, updated)
	})
}

func (f *foreground) begin(worker int, meant time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[worker] = meant
}

// count adds one call.
func (f *foreground) count(worker int, meant, end time.Time, inserted, updated bench.Outcome) {
	micros := int32(bench.Micros(meant, end))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[worker] = time.Time{}
	f.ended.add(end, micros)
	i := int(meant.Sub(f.start) / windowLength)
	for len(f.windows) <= i {
		f.windows = append(f.windows, window{})
	}
	w := &f.windows[i]
	w.micros = append(w.micros, micros)
	w.inserted += int64(inserted.Done)
	w.updated += int64(updated.Done)
	f.totals.inserted += int64(inserted.Done)
	f.totals.updated += int64(updated.Done)
	f.totals.unmatched += int64(updated.Unmatched)
	f.totals.failed += int64(inserted.Failed + updated.Failed)
	for _, text := range append(inserted.Errors, updated.Errors...) {
		f.errors.Add(text)
	}
}

// insert makes one insertMany of documents of now.
func (f *foreground) insert(ctx context.Context, random *rand.Rand, _ int64) (inserted, updated bench.Outcome) {
	now := time.Now().Truncate(time.Millisecond)
	docs, made := make([]bson.Raw, f.options.Batch), make([]document, f.options.Batch)
	for i := range docs {
		made[i] = document{bson.NewObjectID(), now}
		docs[i] = f.data.line(random, made[i].id, now)
	}
	_, err := f.place.collection(now).InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	inserted = bench.Failures(err, len(docs))
	inserted.Done = len(docs) - inserted.Failed
	if err == nil {
		f.fresh.Add(made)
	}
	return inserted, updated
}

// update makes one unordered bulk write for each collection that the chosen documents lie in: one, but for old documents of several days.
func (f *foreground) update(ctx context.Context, random *rand.Rand, n int64) (inserted, updated bench.Outcome) {
	picked := f.pick(random, n)
	withTime := n%2 == 1
	models := make(map[*mongo.Collection][]mongo.WriteModel)
	for _, d := range picked {
		filter := bson.D{{Key: "_id", Value: d.id}}
		if withTime {
			filter = append(filter, bson.E{Key: TimeField, Value: d.time})
		}
		c := f.place.collection(d.time)
		models[c] = append(models[c], mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(bench.Change(random)))
	}
	for c, all := range models {
		r, err := c.BulkWrite(ctx, all, options.BulkWrite().SetOrdered(false))
		o := bench.Failures(err, len(all))
		updated.Failed += o.Failed
		updated.Errors = append(updated.Errors, o.Errors...)
		if r != nil {
			matched := min(int(r.MatchedCount), len(all)-o.Failed)
			updated.Done += matched
			updated.Unmatched += len(all) - o.Failed - matched
		}
	}
	return inserted, updated
}

// pick chooses documents for the n-th update: of the start, but none that has to go, or else of those inserted lately.
func (f *foreground) pick(random *rand.Rand, n int64) []document {
	// Every pair of calls, one by _id alone and one with the time, is of one sort.
	if n/2%100*int64(f.options.OldUpdate)%100 >= int64(f.options.OldUpdate) {
		if picked := f.fresh.Pick(f.options.UpdateBatch, random); len(picked) > 0 {
			return picked
		}
	}
	first := f.data.Old()
	picked := make([]document, f.options.UpdateBatch)
	for k := range picked {
		i := first + random.Int64N(f.data.Documents-first)
		picked[k] = document{f.data.id(i), f.data.time(i)}
	}
	return picked
}

// phase sums up the calls that were meant to begin from one instant to another.
func (f *foreground) phase(from, to time.Time) Phase {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []int32
	var p Phase
	for _, w := range f.between(from, to) {
		all = append(all, w.micros...)
		p.Inserted += w.inserted
		p.Updated += w.updated
	}
	p.Seconds = to.Sub(from).Seconds()
	p.Calls = int64(len(all))
	p.P50 = bench.Percentile(all, 50).Microseconds()
	p.P99 = bench.Percentile(all, 99).Microseconds()
	return p
}

func (f *foreground) between(from, to time.Time) []window {
	index := func(t time.Time) int { return min(max(int(t.Sub(f.start)/windowLength), 0), len(f.windows)) }
	return f.windows[index(from):index(to)]
}

// quantile is the latency that a share of the calls of the last seconds stayed within, and how many there were: those that have ended, and those that
// should have by now. So a stall shows before it is over.
func (f *foreground) quantile(now time.Time, last time.Duration, share float64) (time.Duration, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.ended.since(now.Add(-last))
	for worker, meant := range f.running {
		if meant.IsZero() {
			continue
		}
		// Behind a call that still runs wait those that its worker should have made since.
		for every := f.every(worker); meant.Before(now); meant = meant.Add(every) {
			all = append(all, int32(bench.Micros(meant, now)))
		}
	}
	return bench.Percentile(all, 100*share), len(all)
}

// every is the time from one call of a worker to its next.
func (f *foreground) every(worker int) time.Duration {
	batch, rate := f.options.Batch, f.options.Inserts
	if worker%2 == 1 {
		batch, rate = f.options.UpdateBatch, f.options.Updates
	}
	return time.Duration(f.options.Workers*batch) * time.Second / time.Duration(rate)
}

// endings are the latencies of the calls that ended last.
type endings struct {
	ring [8192]struct {
		at     time.Time
		micros int32
	}
	n int
}

func (e *endings) add(at time.Time, micros int32) {
	last := &e.ring[e.n%len(e.ring)]
	last.at, last.micros = at, micros
	e.n++
}

func (e *endings) since(from time.Time) []int32 {
	var all []int32
	for i := e.n - 1; i >= max(0, e.n-len(e.ring)) && e.ring[i%len(e.ring)].at.After(from); i-- {
		all = append(all, e.ring[i%len(e.ring)].micros)
	}
	return all
}

func (f *foreground) sum() totals {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.totals
}
