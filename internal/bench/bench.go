package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Bench is a running load.
type Bench struct {
	options    Options
	collection *mongo.Collection
	server     Server
	recorder   *recorder
	recent     *Recent[written]
	upkeep     *upkeep
	inserts    *Pacer // nil: none
	updates    *Pacer
	seed       int64 // documents inserted before the clock started
	crew       *Crew
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
	b := &Bench{options: o, collection: collection, recent: NewRecent[written](o.recent())}
	var err error
	if b.server, err = Describe(ctx, collection.Database().Client()); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	b.recorder = newRecorder(start)
	b.upkeep = newUpkeep(collection, b.server.Ahead, start)
	if o.Inserts > 0 {
		b.inserts = NewPacer(start, o.Inserts, o.Batch, o.Duration)
	}
	if o.Updates > 0 {
		b.updates = NewPacer(start, o.Updates, o.UpdateBatch, o.Duration)
	}
	b.crew = NewCrew(ctx)
	for i := range o.Workers {
		b.spawn(ctx, b.inserts, uint64(2*i), b.insert)
		b.spawn(ctx, b.updates, uint64(2*i+1), b.update)
	}
	go b.crew.Finish(ctx, o.Duration)
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
	b.recent.Add(made)
	b.seed = int64(len(made))
	return nil
}

// spawn starts a worker that makes a pacer's calls.
func (b *Bench) spawn(ctx context.Context, p *Pacer, seed uint64, call func(context.Context, *writer, int64) (Kind, Outcome)) {
	if p == nil {
		return
	}
	w := newWriter(b.options, seed+uint64(p.start.UnixNano()))
	b.crew.Spawn(ctx, p, func(ctx context.Context, n int64, meant time.Time) {
		kind, o := call(ctx, w, n)
		b.recorder.add(kind, meant, time.Now(), o)
	})
}

// insert makes one insertMany, unordered, as collectors of logs do.
func (b *Bench) insert(ctx context.Context, w *writer, _ int64) (Kind, Outcome) {
	docs, made := w.batch(b.options.Batch, time.Now())
	_, err := b.collection.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	o := Failures(err, len(docs))
	o.Done = len(docs) - o.Failed
	if o.Failed == 0 {
		b.recent.Add(made)
	}
	return Insert, o
}

// update changes documents inserted lately, by _id alone in every other call.
func (b *Bench) update(ctx context.Context, w *writer, n int64) (Kind, Outcome) {
	kind := UpdateByID + Kind(n%2)
	picked := b.recent.Pick(b.options.UpdateBatch, w.random)
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
	o := Failures(err, len(picked))
	o.Done = min(int(matched), len(picked)-o.Failed)
	o.Unmatched = len(picked) - o.Failed - o.Done
	return kind, o
}

// Failures counts what failed of n documents: those that the server names, or all when the call as a whole did.
func Failures(err error, n int) Outcome {
	var bulk mongo.BulkWriteException
	switch {
	case err == nil:
		return Outcome{}
	case errors.As(err, &bulk) && len(bulk.WriteErrors) > 0:
		o := Outcome{Failed: len(bulk.WriteErrors)}
		for _, e := range bulk.WriteErrors {
			o.Errors = append(o.Errors, fmt.Sprintf("code %d", e.Code))
		}
		o.Errors[0] = bulk.WriteErrors[0].Error()
		return o
	}
	return Outcome{Failed: n, Errors: []string{err.Error()}}
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
func (b *Bench) Done() <-chan struct{} { return b.crew.Done() }
