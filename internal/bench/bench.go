package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// grace is how long calls that were begun may take after the end.
const grace = 10 * time.Second

// Bench is a running load.
type Bench struct {
	options    Options
	collection *mongo.Collection
	server     server
	recorder   *recorder
	recent     *recent
	upkeep     *upkeep
	inserts    *pacer // nil: none
	updates    *pacer
	seed       int64 // documents inserted before the clock started
	workers    sync.WaitGroup
	done       chan struct{} // closed when all workers have ended
	ended      time.Time
}

// Totals are documents so far.
type Totals struct {
	Inserted, Updated int64
	Unmatched         int64 // updates that found no document: its partition is gone
	Failed            int64
}

// Start makes the indexes on time and dev, inserts one batch, and then begins with the load, until the duration is over or ctx ends.
func Start(ctx context.Context, collection *mongo.Collection, o Options) (*Bench, error) {
	o = o.withDefaults()
	b := &Bench{options: o, collection: collection, recent: newRecent(o.recent()), done: make(chan struct{})}
	var err error
	if b.server, err = describe(ctx, collection.Database().Client()); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	b.recorder = newRecorder(start)
	b.upkeep = newUpkeep(collection, b.server.ahead, start)
	if o.Inserts > 0 {
		b.inserts = newPacer(start, o.Inserts, o.Batch, o.Duration)
	}
	if o.Updates > 0 {
		b.updates = newPacer(start, o.Updates, o.UpdateBatch, o.Duration)
	}
	// What was begun may end in its own time, also when ctx has.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	for i := range o.Workers {
		b.spawn(ctx, calls, b.inserts, uint64(2*i), b.insert)
		b.spawn(ctx, calls, b.updates, uint64(2*i+1), b.update)
	}
	go b.finish(ctx, cancel)
	return b, nil
}

// prepare makes the indexes and the first documents, so that neither counts, and updates have what to change.
func (b *Bench) prepare(ctx context.Context) error {
	keys := []string{b.options.TimeField, "dev"}
	models := make([]mongo.IndexModel, len(keys))
	for i, key := range keys {
		models[i] = mongo.IndexModel{Keys: bson.D{{Key: key, Value: 1}}}
	}
	if _, err := b.collection.Indexes().CreateMany(ctx, models); err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	docs, made := newWriter(b.options, 1).batch(b.options.Batch, time.Now())
	if _, err := b.collection.InsertMany(ctx, docs); err != nil {
		return fmt.Errorf("insert the first documents: %w", err)
	}
	b.recent.add(made)
	b.seed = int64(len(made))
	return nil
}

// spawn starts a worker that makes a pacer's calls.
func (b *Bench) spawn(ctx, calls context.Context, p *pacer, seed uint64, call func(context.Context, *writer, int64) (Kind, outcome)) {
	if p == nil {
		return
	}
	w := newWriter(b.options, seed+uint64(p.start.UnixNano()))
	b.workers.Go(func() {
		for n, meant, ok := p.next(ctx); ok; n, meant, ok = p.next(ctx) {
			kind, o := call(calls, w, n)
			b.recorder.add(kind, meant, time.Now(), o)
		}
	})
}

// finish waits for the workers, and cuts off what takes too long at the end.
func (b *Bench) finish(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	defer close(b.done)
	all := make(chan struct{})
	go func() { defer close(all); b.workers.Wait() }()
	var over <-chan time.Time
	if b.options.Duration > 0 {
		timer := time.NewTimer(b.options.Duration + grace)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-all:
	case <-over:
	case <-ctx.Done():
		select {
		case <-all:
		case <-time.After(grace):
		}
	}
	cancel()
	<-all
	b.ended = time.Now()
}

// insert makes one insertMany, unordered, as collectors of logs do.
func (b *Bench) insert(ctx context.Context, w *writer, _ int64) (Kind, outcome) {
	docs, made := w.batch(b.options.Batch, time.Now())
	_, err := b.collection.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	o := failures(err, len(docs))
	o.done = len(docs) - o.failed
	if o.failed == 0 {
		b.recent.add(made)
	}
	return Insert, o
}

// update changes documents inserted lately, by _id alone in every other call.
func (b *Bench) update(ctx context.Context, w *writer, n int64) (Kind, outcome) {
	kind := UpdateByID + Kind(n%2)
	picked := b.recent.pick(b.options.UpdateBatch, w.random)
	var matched int64
	var err error
	if b.options.UpdateBatch == 1 {
		var r *mongo.UpdateResult
		if r, err = b.collection.UpdateOne(ctx, w.filter(picked[0], kind), w.change()); r != nil {
			matched = r.MatchedCount
		}
	} else {
		models := make([]mongo.WriteModel, len(picked))
		for i, of := range picked {
			models[i] = mongo.NewUpdateOneModel().SetFilter(w.filter(of, kind)).SetUpdate(w.change())
		}
		var r *mongo.BulkWriteResult
		if r, err = b.collection.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false)); r != nil {
			matched = r.MatchedCount
		}
	}
	o := failures(err, len(picked))
	o.done = min(int(matched), len(picked)-o.failed)
	o.unmatched = len(picked) - o.failed - o.done
	return kind, o
}

// failures counts what failed of n documents: those that the server names, or all when the call as a whole did.
func failures(err error, n int) outcome {
	var bulk mongo.BulkWriteException
	switch {
	case err == nil:
		return outcome{}
	case errors.As(err, &bulk) && len(bulk.WriteErrors) > 0:
		o := outcome{failed: len(bulk.WriteErrors)}
		for _, e := range bulk.WriteErrors {
			o.errors = append(o.errors, fmt.Sprintf("code %d", e.Code))
		}
		o.errors[0] = bulk.WriteErrors[0].Error()
		return o
	}
	return outcome{failed: n, errors: []string{err.Error()}}
}

// Totals returns the documents so far, the first batch not among them.
func (b *Bench) Totals() Totals { return b.recorder.totals() }

// InsertP99 returns the 99th percentile of the inserts that were meant to begin lately.
func (b *Bench) InsertP99(lately time.Duration) time.Duration {
	from := int((time.Since(b.recorder.start) - lately) / window)
	return b.recorder.insertP99(from)
}

// Events asks the gateway what it did to the collection's partitions since the start; none if the server is no gateway.
func (b *Bench) Events(ctx context.Context) ([]Event, error) { return b.upkeep.poll(ctx) }

// Done is closed when the load has ended.
func (b *Bench) Done() <-chan struct{} { return b.done }
