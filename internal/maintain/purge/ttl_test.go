package purge_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/maintain/purge"
)

// expiring is a store that says of its index i that it expires after an hour, as the embedded engine can't, and how many documents went so.
type expiring struct {
	store
	deleted int64
}

func (e *expiring) Run(ctx context.Context, r *backend.Request) (bson.Document, error) {
	switch name, _, _ := bson.First(r.Body); name {
	case "serverStatus":
		b := bsoncore.NewDocumentBuilder().StartDocument("metrics").StartDocument("ttl").AppendInt64("deletedDocuments", e.deleted)
		return bson.Document(b.FinishDocument().FinishDocument().AppendDouble("ok", 1).Build()), nil
	case "listIndexes":
		reply, err := e.store.Run(ctx, r)
		if err != nil {
			return nil, err
		}
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			return nil, err
		}
		specs := bsoncore.NewArrayBuilder()
		for it := bson.Elements(c.Batch); it.Next(); {
			spec := bytes.Clone(it.Value().Data)
			if n, _ := bson.Get(spec, "name"); n.StringValue() == "i" {
				spec, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendInt32Element(spec[:len(spec)-1], "expireAfterSeconds", 3600), 0)
			}
			specs.AppendDocument(spec)
		}
		b := bsoncore.NewDocumentBuilder().StartDocument("cursor").AppendArray("firstBatch", specs.Build()).AppendInt64("id", 0).AppendString("ns", "fla.log")
		return bson.Document(b.FinishDocument().AppendDouble("ok", 1).Build()), nil
	}
	return e.store.Run(ctx, r)
}

// TestTTL: it is told since when a TTL index does not keep up, what it takes, and when it keeps up again; nothing goes.
func TestTTL(t *testing.T) {
	s := openStore(t)
	s.index(t, `{"time": 1}`)
	docs := lines(120, time.Minute) // the first 60 have expired
	s.insert(t, docs...)
	e := &expiring{store: s, deleted: 1000}
	at := now
	o := purge.Options{Strategy: purge.TTL, Targets: purge.At(e, logs), Clock: func() time.Time { return at }}
	job, err := purge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := job.Step(t.Context(), nil, free{})
	if err != nil {
		t.Fatal(err)
	}
	x := expiry(t, out.Checkpoint)
	since := now.Add(-time.Hour + 2*time.Minute) // when the oldest had been expired for two passes
	if x.KeepsUp() || x.Expired != 60 || out.Remaining != 60 || x.Late != time.Hour || !x.Behind.Equal(since) || x.Rate >= 0 {
		t.Errorf("found %+v", x)
	}

	at, e.deleted = at.Add(time.Minute), 1600
	if out, err = job.Step(t.Context(), out.Checkpoint, free{}); err != nil {
		t.Fatal(err)
	}
	if x = expiry(t, out.Checkpoint); x.KeepsUp() || !x.Behind.Equal(since) || x.Rate != 10 || x.Oplog <= 1000 || x.Oplog >= 3000 {
		t.Errorf("a minute later found %+v", x)
	}
	wantSame(t, s.all(t), docs)

	s.command(t, `{"delete": "log", "deletes": [{"q": {"_id": {"$lte": 60}}, "limit": 0}]}`)
	at = at.Add(time.Minute)
	if out, err = job.Step(t.Context(), out.Checkpoint, free{}); err != nil {
		t.Fatal(err)
	}
	if x = expiry(t, out.Checkpoint); !x.KeepsUp() || !x.Behind.IsZero() || x.Expired != 2 {
		t.Errorf("after it caught up found %+v", x)
	}

	o.Targets = purge.At(s, logs)
	_, err = finish(t.Context(), o)
	wantRefusal(t, err, "no TTL index")
}

func expiry(t *testing.T, checkpoint bson.Document) *purge.Expiry {
	t.Helper()
	x, err := purge.ReadExpiry(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
