package im

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/bench"
)

// Bench is a running load.
type Bench struct {
	options    Options
	collection *mongo.Collection
	server     bench.Server
	before     int64 // documents there at the start
	start      time.Time
	writes     *bench.Pacer
	logins     *bench.Pacer
	crew       *bench.Crew
	messages   atomic.Int64 // the last msgid
	users      []sync.Mutex // held by a user's login

	mu     sync.Mutex
	kinds  [kinds]bench.Tally
	errors bench.Errors
}

// Totals are messages so far.
type Totals struct {
	Written, Read, Settled int64
	Failed                 int64 // of writes and of what was read; a login whose read failed counts as one
}

// Start makes the index on touid and then begins with the load, until the duration is over or ctx ends.
func Start(ctx context.Context, collection *mongo.Collection, o Options) (*Bench, error) {
	o = o.withDefaults()
	b := &Bench{options: o, collection: collection, users: make([]sync.Mutex, o.Users), errors: make(bench.Errors)}
	for k := range b.kinds {
		b.kinds[k] = bench.NewTally()
	}
	var err error
	if b.server, err = bench.Describe(ctx, collection.Database().Client()); err != nil {
		return nil, err
	}
	if _, err := collection.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "touid", Value: 1}}}); err != nil {
		return nil, fmt.Errorf("make the index: %w", err)
	}
	if b.before, err = collection.EstimatedDocumentCount(ctx); err != nil {
		return nil, fmt.Errorf("count what is there: %w", err)
	}
	b.start = time.Now()
	b.writes = bench.NewPacer(b.start, 60*o.Messages, 1, o.Duration)
	b.logins = bench.NewPacer(b.start, 60*o.Logins, 1, o.Duration)
	b.crew = bench.NewCrew(ctx)
	for i := range o.Workers {
		random := rand.New(rand.NewPCG(uint64(i), uint64(b.start.UnixNano())))
		b.crew.Spawn(ctx, b.writes, func(ctx context.Context, _ int64, meant time.Time) { b.write(ctx, random, meant) })
		b.crew.Spawn(ctx, b.logins, func(ctx context.Context, n int64, meant time.Time) { b.login(ctx, int32(n%int64(o.Users)), meant) })
	}
	go b.crew.Finish(ctx, o.Duration)
	return b, nil
}

// write stores one message.
func (b *Bench) write(ctx context.Context, random *rand.Rand, meant time.Time) {
	_, err := b.collection.InsertOne(ctx, message(random, b.messages.Add(1), &b.options, time.Now()))
	b.count(Write, meant, 1, 1, err)
}

// login gives a user the messages that have come, and settles them.
func (b *Bench) login(ctx context.Context, user int32, meant time.Time) {
	b.users[user].Lock()
	defer b.users[user].Unlock()
	ids, err := b.read(ctx, user)
	b.count(Read, meant, int64(len(ids)), max(len(ids), 1), err)
	if err != nil || len(ids) == 0 {
		return
	}
	begun := time.Now()
	n, err := b.settle(ctx, user, ids)
	b.count(Settle, begun, n, len(ids), err)
}

func (b *Bench) read(ctx context.Context, user int32) ([]bson.ObjectID, error) {
	cursor, err := b.collection.Find(ctx, b.options.unread(user), options.Find().SetSort(bson.D{{Key: "timestamp", Value: 1}}))
	if err != nil {
		return nil, err
	}
	defer cursor.Close(ctx)
	var ids []bson.ObjectID
	for cursor.Next(ctx) {
		ids = append(ids, cursor.Current.Lookup("_id").ObjectID())
	}
	return ids, cursor.Err()
}

// settle marks or deletes messages and returns how many.
func (b *Bench) settle(ctx context.Context, user int32, ids []bson.ObjectID) (int64, error) {
	if b.options.Mark {
		r, err := b.collection.UpdateMany(ctx, delivered(user, ids), bson.D{{Key: "$set", Value: bson.D{{Key: "flag", Value: int32(1)}}}})
		if err != nil {
			return 0, err
		}
		return r.ModifiedCount, nil
	}
	r, err := b.collection.DeleteMany(ctx, delivered(user, ids))
	if err != nil {
		return 0, err
	}
	return r.DeletedCount, nil
}

// count adds a call that was about some documents.
func (b *Bench) count(k Kind, meant time.Time, done int64, of int, err error) {
	micros := bench.Micros(meant, time.Now())
	o := bench.Failures(err, of)
	if err == nil {
		o.Done = int(done)
		o.Unmatched = max(0, of-o.Done)
		if k == Read {
			o.Unmatched = 0 // nothing had come
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kinds[k].Add(micros, o)
	for _, text := range o.Errors {
		b.errors.Add(text)
	}
}

// Totals returns the messages so far.
func (b *Bench) Totals() Totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Totals{Written: b.kinds[Write].Done, Read: b.kinds[Read].Done, Settled: b.kinds[Settle].Done}
	for k := range b.kinds {
		t.Failed += b.kinds[k].Failed
	}
	return t
}

// Done is closed when the load has ended.
func (b *Bench) Done() <-chan struct{} { return b.crew.Done() }
