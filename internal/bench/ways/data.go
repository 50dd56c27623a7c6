package ways

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/sync/errgroup"

	"oxbow/internal/bench"
)

// Data is what a collection holds at the start: documents numbered by their time, the first half older than the cutoff. What has to go is all before it.
type Data struct {
	Documents int64
	Size      int
	Cutoff    time.Time // a midnight of UTC, one to two days before End
	End       time.Time
	devices   int
}

// oldDays is how many days the old half is spread over.
const oldDays = 2

// gap is how long after the cutoff the documents begin that have to stay: what lets documents expire by their age goes on with the time, and must meet none
// of them during a run.
const gap = time.Hour

// NewData lays out data that ends now.
func NewData(o Options, now time.Time) *Data {
	o = o.withDefaults()
	end := now.UTC().Truncate(time.Millisecond)
	return &Data{o.Documents, o.Size, end.Truncate(24*time.Hour).AddDate(0, 0, -1), end, o.Devices}
}

// Old is how many documents have to go: those numbered below it.
func (d *Data) Old() int64 { return d.Documents / 2 }

// Start is the time of the first document.
func (d *Data) Start() time.Time { return d.Cutoff.AddDate(0, 0, -oldDays) }

// time is that of the i-th document.
func (d *Data) time(i int64) time.Time {
	from, to, first, n := d.Start(), d.Cutoff, int64(0), d.Old()
	if i >= d.Old() {
		from, to, first, n = d.Cutoff.Add(gap), d.End, d.Old(), d.Documents-d.Old()
	}
	return from.Add(time.Duration(float64(to.Sub(from)) * (float64(i-first) / float64(n)))).Truncate(time.Millisecond)
}

// id is the _id of the i-th document: an ObjectId of its time, numbered, so that nothing has to be remembered of those that were written.
func (d *Data) id(i int64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], uint32(d.time(i).Unix()))
	id[4] = 0xb0 // with the zeros behind it: a driver's five bytes are random
	binary.BigEndian.PutUint32(id[8:], uint32(i))
	return id
}

// document is the i-th one.
func (d *Data) document(random *rand.Rand, i int64) bson.Raw {
	return d.line(random, d.id(i), d.time(i))
}

func (d *Data) line(random *rand.Rand, id bson.ObjectID, at time.Time) bson.Raw {
	value := bsoncore.Value{Type: bsoncore.TypeDateTime, Data: bsoncore.AppendDateTime(nil, at.UnixMilli())}
	return bench.Line(random, id, TimeField, value, d.devices, d.Size)
}

// Fill makes the indexes on time and dev and writes all documents, in the order of their time as far as workers keep it. It tells progress of documents so far.
func (d *Data) Fill(ctx context.Context, p *Place, workers int, progress func(done int64)) error {
	for _, c := range p.collections(d.Start(), d.End) {
		if err := makeIndexes(ctx, c); err != nil {
			return err
		}
	}
	batch := int64(min(max(fillBytes/d.Size, 1), 1000))
	var next, done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		random := rand.New(rand.NewPCG(uint64(w), uint64(d.Documents)))
		g.Go(func() error {
			for {
				from := next.Add(batch) - batch
				if from >= d.Documents {
					return nil
				}
				to := min(from+batch, d.Documents)
				if err := d.write(ctx, p, random, from, to); err != nil {
					return fmt.Errorf("fill: %w", err)
				}
				progress(done.Add(to - from))
			}
		})
	}
	return g.Wait()
}

// makeIndexes makes the indexes of a collection of log lines.
func makeIndexes(ctx context.Context, c *mongo.Collection) error {
	models := []mongo.IndexModel{{Keys: bson.D{{Key: TimeField, Value: 1}}}, {Keys: bson.D{{Key: "dev", Value: 1}}}}
	if _, err := c.Indexes().CreateMany(ctx, models); err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	return nil
}

// write inserts the documents numbered from from to before to, collection by collection.
func (d *Data) write(ctx context.Context, p *Place, random *rand.Rand, from, to int64) error {
	for from < to {
		c, n := p.collection(d.time(from)), from+1
		for n < to && p.collection(d.time(n)) == c {
			n++
		}
		docs := make([]bson.Raw, 0, n-from)
		for ; from < n; from++ {
			docs = append(docs, d.document(random, from))
		}
		if _, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false)); err != nil {
			return err
		}
	}
	return nil
}
