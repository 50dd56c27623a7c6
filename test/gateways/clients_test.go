package gateways

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// document is one that a writer has sent.
type document struct {
	id int64
	at time.Time
}

// end is when its partition ends.
func (d document) end() time.Time { return d.at.Truncate(time.Minute).Add(time.Minute) }

// kept reports whether its partition can't have been hidden at an instant.
func (d document) kept(now time.Time) bool { return d.end().Add(keep).After(now) }

func (d document) bson() bson.D {
	return bson.D{{Key: "_id", Value: d.id}, {Key: "n", Value: d.id % 7}, {Key: "at", Value: d.at}}
}

// written is what writers sent and readers found.
type written struct {
	sync.Mutex
	next         int64
	sent         map[int64]document
	acknowledged []document // in the order of their acknowledgement
	failed       map[int]int
	finds        int
	unanswered   map[int]int
	examples     map[int]string // an error of each code
}

func newWritten() *written {
	return &written{sent: map[int64]document{}, failed: map[int]int{}, unanswered: map[int]int{}, examples: map[int]string{}}
}

func (w *written) String() string {
	w.Lock()
	defer w.Unlock()
	return fmt.Sprintf("%d of %d inserts acknowledged, the others by code %v; %d finds answered, not answered by code %v, such as %v",
		len(w.acknowledged), len(w.sent), w.failed, w.finds, w.unanswered, w.examples)
}

// take gives a writer documents to send.
func (w *written) take(n int, at func() time.Time) (list []document) {
	w.Lock()
	defer w.Unlock()
	for range n {
		w.next++
		d := document{w.next, at()}
		w.sent[d.id] = d
		list = append(list, d)
	}
	return list
}

// pick returns a document that was acknowledged lately and is kept.
func (w *written) pick(rng *rand.Rand, now time.Time) (document, bool) {
	w.Lock()
	defer w.Unlock()
	if len(w.acknowledged) == 0 {
		return document{}, false
	}
	from := max(0, len(w.acknowledged)-2000)
	if rng.IntN(2) == 0 {
		from = max(0, len(w.acknowledged)-20)
	}
	d := w.acknowledged[from+rng.IntN(len(w.acknowledged)-from)]
	return d, d.kept(now)
}

// code is that of an error: of a server's, 0 for others.
func code(err error) int {
	var server mongo.ServerError
	if errors.As(err, &server) {
		if codes := server.ErrorCodes(); len(codes) > 0 {
			return codes[0]
		}
	}
	return 0
}

// operation bounds one command.
func operation() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

// write inserts through one gateway until the test stops it.
func (r *rig) write(i int, rng *rand.Rand) {
	c := r.clients[i].Database(database).Collection(logs1)
	for !r.stopped() {
		// Mostly of now; now and then of the ranges before, and of one to come.
		list := r.written.take(1+rng.IntN(3), func() time.Time {
			return r.clock.now().Add([]time.Duration{0, 0, 0, -time.Minute, -3 * time.Minute, time.Minute}[rng.IntN(6)]).Truncate(time.Millisecond)
		})
		docs := make([]any, len(list))
		for i, d := range list {
			docs[i] = d.bson()
		}
		ctx, cancel := operation()
		_, err := c.InsertMany(ctx, docs)
		cancel()
		r.written.Lock()
		if err == nil {
			r.written.acknowledged = append(r.written.acknowledged, list...)
		} else {
			r.written.failed[code(err)] += len(list)
			r.written.examples[code(err)] = err.Error()
		}
		r.written.Unlock()
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// read looks through one gateway for what was acknowledged, whoever wrote it, until the test stops it.
func (r *rig) read(t *testing.T, i int, rng *rand.Rand) {
	c := r.clients[i].Database(database).Collection(logs1)
	for !r.stopped() {
		d, ok := r.written.pick(rng, r.clock.now())
		if !ok {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		filter := bson.D{{Key: "_id", Value: d.id}}
		switch rng.IntN(3) {
		case 0:
			filter = append(filter, bson.E{Key: "at", Value: d.at})
		case 1:
			filter = append(filter, bson.E{Key: "n", Value: d.id % 7}, bson.E{Key: "at", Value: bson.D{{Key: "$gte", Value: d.at}}})
		}
		began := r.clock.now()
		ctx, cancel := operation()
		err := c.FindOne(ctx, filter).Err()
		cancel()
		ended := r.clock.now()
		r.written.Lock()
		if err == nil {
			r.written.finds++
		} else if !errors.Is(err, mongo.ErrNoDocuments) {
			r.written.unanswered[code(err)]++
		}
		r.written.Unlock()
		if errors.Is(err, mongo.ErrNoDocuments) && d.kept(ended) {
			t.Errorf("document %d of %s was acknowledged, and gateway %d does not find it with %v between %s and %s", d.id, clockTime(d.at), i, filter, clockTime(began), clockTime(ended))
			return
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func clockTime(at time.Time) string { return at.UTC().Format("15:04:05.000") }

func (r *rig) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// checkAll compares what each gateway finds with what was sent and acknowledged.
func (r *rig) checkAll(t *testing.T) {
	t.Helper()
	for i, client := range r.clients {
		found := map[int64]bool{}
		r.eventually(t, fmt.Sprintf("gateway %d answers", i), func(ctx context.Context) error {
			clear(found)
			cursor, err := client.Database(database).Collection(logs1).Find(ctx, bson.D{})
			if err != nil {
				return err
			}
			defer cursor.Close(ctx)
			for cursor.Next(ctx) {
				id, _ := cursor.Current.Lookup("_id").AsInt64OK()
				if found[id] {
					t.Errorf("gateway %d finds document %d twice", i, id)
				}
				found[id] = true
			}
			return cursor.Err()
		})
		now := r.clock.now()
		missing := 0
		for _, d := range r.written.acknowledged {
			if d.kept(now) && !found[d.id] {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("gateway %d does not find %d documents that were acknowledged and are kept", i, missing)
		}
		for _, id := range slices.Sorted(maps.Keys(found)) {
			if _, sent := r.written.sent[id]; !sent {
				t.Errorf("gateway %d finds document %d, which nobody wrote", i, id)
			}
		}
	}
}

// eventually tries until there is no error, for a minute.
func (r *rig) eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
