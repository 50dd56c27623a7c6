package purge

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
	"oxbow/internal/route"
)

// watching is the strategy TTL: it deletes nothing, and tells whether the server's own expiry keeps up.
type watching struct{ options Options }

// Expiry is what a look at a collection with a TTL index found.
type Expiry struct {
	At      time.Time     `bson:"at" json:"at"`
	Index   string        `bson:"index" json:"index"`
	Field   string        `bson:"field" json:"field"`
	After   time.Duration `bson:"after" json:"afterNanos"`       // expireAfterSeconds
	Oldest  time.Time     `bson:"oldest" json:"oldest"`          // time of the oldest document that it can expire; zero: there is none
	Late    time.Duration `bson:"late" json:"lateNanos"`         // for which that one has been expired, 0: it is not
	Expired int64         `bson:"expired" json:"expired"`        // documents that are, -1: counting takes too long
	Behind  time.Time     `bson:"behind" json:"behind,omitzero"` // since when it has not kept up; zero: it keeps up
	Deleted int64         `bson:"deleted" json:"deleted"`        // by all TTL indexes of the server since its start, -1: it does not tell
	Rate    float64       `bson:"rate" json:"rate"`              // of those a second between two looks, -1: not known
	Oplog   int64         `bson:"oplog" json:"oplogBytes"`       // a second that Rate costs, -1: not known
}

// ttlPass is how often the TTL monitor makes a pass (https://www.mongodb.com/docs/manual/core/index-ttl/). What has been expired for longer than two passes
// was there when a pass ended.
const ttlPass = time.Minute

// KeepsUp reports whether nothing has been expired for longer than two passes.
func (e *Expiry) KeepsUp() bool { return e.Late <= 2*ttlPass }

// ReadExpiry reads a checkpoint of TTL.
func ReadExpiry(checkpoint bson.Document) (*Expiry, error) {
	e := &Expiry{}
	if err := driver.Unmarshal(checkpoint, e); err != nil {
		return nil, fmt.Errorf("read the checkpoint: %w", err)
	}
	return e, nil
}

// Step implements maintain.Job: it looks when it is time, and is never done.
func (w *watching) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	before := &Expiry{Deleted: -1}
	if checkpoint != nil {
		var err error
		if before, err = ReadExpiry(checkpoint); err != nil {
			return maintain.Outcome{}, err
		}
		if left := w.options.Every - w.options.Clock().Sub(before.At); left > 0 {
			wait(ctx, min(left, stepTime))
			return maintain.Outcome{Checkpoint: checkpoint, Remaining: before.Expired}, nil
		}
	}
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return maintain.Outcome{}, err
	}
	targets, err := w.options.Targets(ctx)
	if err != nil {
		return maintain.Outcome{}, fmt.Errorf("list what documents go from: %w", err)
	}
	for _, t := range targets {
		now, err := w.options.on(t).expiry(ctx, w.options.Clock())
		if err != nil {
			return maintain.Outcome{}, err
		}
		if now == nil {
			continue
		}
		now.since(before)
		w.log(t, now, before)
		out := maintain.Outcome{Remaining: now.Expired}
		out.Checkpoint, err = driver.Marshal(now)
		return out, err
	}
	return maintain.Outcome{}, &Refusal{Reason: "there is no TTL index to watch"}
}

// log tells when it begins and when it ceases not to keep up.
func (w *watching) log(t Target, now, before *Expiry) {
	switch {
	case !now.Behind.IsZero() && before.Behind.IsZero():
		w.options.Log.Warn("the TTL index does not keep up", "collection", t.Namespace, "index", now.Index, "late", now.Late, "expired", now.Expired)
	case now.Behind.IsZero() && !before.Behind.IsZero():
		w.options.Log.Info("the TTL index keeps up again", "collection", t.Namespace, "index", now.Index, "since", before.Behind.UTC())
	}
}

// since compares a look with the one before.
func (e *Expiry) since(before *Expiry) {
	if !e.KeepsUp() {
		// It fell behind when the oldest one had been expired for two passes.
		e.Behind = e.At.Add(2*ttlPass - e.Late)
		if !before.Behind.IsZero() {
			e.Behind = before.Behind
		}
	}
	passed := e.At.Sub(before.At).Seconds()
	if e.Deleted < 0 || before.Deleted < 0 || e.Deleted < before.Deleted || passed <= 0 {
		e.Rate, e.Oplog = -1, -1
		return
	}
	e.Rate = float64(e.Deleted-before.Deleted) / passed
	e.Oplog = int64(e.Rate * float64(e.Oplog))
}

// expiry looks at a collection; nil where it has no TTL index. Oplog is that of one document.
func (c *collection) expiry(ctx context.Context, now time.Time) (*Expiry, error) {
	specs, err := c.indexes(ctx)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		after, ok := bson.Get(spec, "expireAfterSeconds")
		pattern, name, plain := plainIndex(spec)
		seconds, number := after.AsInt64OK()
		if !ok || !number || !plain {
			continue
		}
		e := &Expiry{At: now, Index: name, Field: pattern[0], After: time.Duration(seconds) * time.Second, Deleted: c.expiredSoFar(ctx)}
		return e, c.oldest(ctx, e)
	}
	return nil, nil
}

// oldest finds the oldest document that can expire, and counts those that have.
func (c *collection) oldest(ctx context.Context, e *Expiry) error {
	dates := span{path: e.Field, lo: bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, math.MinInt64)}}
	found, err := c.find(ctx, find{filter: dates.filter(), sort: ascending(e.Field), projection: fieldsOnly("_id", e.Field), hint: text(e.Index), limit: 1})
	if err != nil || len(found) == 0 {
		return err
	}
	id, _ := bson.Get(found[0], "_id")
	e.Oplog = OplogBytes(c.Namespace.String(), id)
	if v, ok, array := bson.ParsePath(e.Field).Lookup(found[0]); ok && !array {
		e.Oldest, _ = v.TimeOK()
	}
	limit := e.At.Add(-e.After)
	if !e.Oldest.IsZero() && e.Oldest.Before(limit) {
		e.Late = limit.Sub(e.Oldest)
	}
	dates.hi = unitValue(route.Date, limit)
	if e.Expired, err = c.count(ctx, dates.filter(), text(e.Index), countTime); err != nil {
		e.Expired = -1
	}
	return nil
}

// expiredSoFar is the server's counter of documents that TTL indexes took, -1 where it tells none
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/#mongodb-serverstatus-serverstatus.metrics.ttl.deletedDocuments).
func (c *collection) expiredSoFar(ctx context.Context) int64 {
	reply, err := c.run(ctx, c.Backend, bsoncore.NewDocumentBuilder().AppendInt32("serverStatus", 1))
	if err != nil {
		return -1
	}
	v, err := bsoncore.Document(reply).LookupErr("metrics", "ttl", "deletedDocuments")
	if err != nil {
		return -1
	}
	n, ok := v.AsInt64OK()
	if !ok {
		return -1
	}
	return n
}
