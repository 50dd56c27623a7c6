package exec

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// clusterTimeDoc is a $clusterTime, with a signature in which the time shows again.
func clusterTimeDoc(at Timestamp) bson.Document {
	return with(nil, func(dst []byte) []byte {
		dst = bsoncore.AppendTimestampElement(dst, "clusterTime", uint32(at>>32), uint32(at))
		return bsoncore.AppendInt64Element(dst, "signature", int64(at))
	})
}

// TestAmendment: an amended body has what was to be added and in place of what, and every other field as it was, in its order.
func TestAmendment(t *testing.T) {
	keys := []string{"find", "readConcern", "$clusterTime", "filter", "comment", "operationTime"}
	rapid.Check(t, func(r *rapid.T) {
		body := with(nil, func(dst []byte) []byte {
			for i, key := range rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID[string]).Draw(r, "keys") {
				dst = bsoncore.AppendInt32Element(dst, key, int32(i))
			}
			return dst
		})
		var change amendment
		var want []string
		other := rapid.SampledFrom([]string{"readConcern", "$clusterTime", ""}).Draw(r, "replaced")
		gone := rapid.Bool().Draw(r, "by nothing")
		doc := clusterTimeDoc(7)
		if gone {
			doc = nil
		}
		switch other {
		case "readConcern":
			change.replaceConcern(doc)
		case "$clusterTime":
			change.replaceClusterTime(doc)
		}
		if rapid.Bool().Draw(r, "more") {
			change.elements = bsoncore.AppendBooleanElement(nil, "more", true)
		}
		it := bson.Elements(body)
		for it.Next() {
			if string(it.Key()) != other {
				want = append(want, string(it.Raw()))
			}
		}
		if other != "" && !gone {
			want = append(want, string(bsoncore.AppendDocumentElement(nil, other, doc)))
		}
		if change.elements != nil {
			want = append(want, string(change.elements))
		}
		var got []string
		amended := change.apply(slices.Clone(body))
		it = bson.Elements(amended)
		for it.Next() {
			got = append(got, string(it.Raw()))
		}
		if !slices.Equal(got, want) || bson.Validate(amended, 10) != nil || change.empty() != (other == "" && change.elements == nil) {
			r.Fatalf("%s became %s", body, amended)
		}
		rest := without(slices.Clone(body), "operationTime", "$clusterTime")
		it = bson.Elements(body)
		want = nil
		for it.Next() {
			if key := string(it.Key()); key != "operationTime" && key != "$clusterTime" {
				want = append(want, string(it.Raw()))
			}
		}
		got = nil
		for it = bson.Elements(rest); it.Next(); {
			got = append(got, string(it.Raw()))
		}
		if !slices.Equal(got, want) || bson.Validate(rest, 10) != nil {
			r.Fatalf("%s without times became %s", body, rest)
		}
	})
}

// TestClocks: of times that come in any order, from several commands at once, the newest stays, with its own signature.
func TestClocks(t *testing.T) {
	c := NewClocks([]string{"rs1", "rs2"})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for at := range uint64(1000) {
				c.Advance("rs1", clusterTimeDoc((at*7919+uint64(i)*127)%1000+1))
			}
		})
	}
	wg.Wait()
	if got := c.Of("rs1"); string(got) != string(clusterTimeDoc(1000)) || c.Of("rs2") != nil {
		t.Errorf("the newest are %s and %s", got, c.Of("rs2"))
	}
	c.Advance("unknown", clusterTimeDoc(1))
	c.Advance("rs1", nil)
	var none *Clocks
	none.Advance("rs1", clusterTimeDoc(1))
	if none.Of("rs1") != nil {
		t.Error("clocks that are not kept have a time")
	}
}

// recorder is a backend that takes every command, one at a time or not.
type recorder struct {
	mu     sync.Mutex
	under  int
	most   int
	bodies []bson.Document
}

func (b *recorder) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	b.mu.Lock()
	b.under++
	b.most = max(b.most, b.under)
	b.bodies = append(b.bodies, slices.Clone(req.Body))
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.under--
	}()
	return driver.Marshal(driver.D{{Key: "n", Value: 0}, {Key: "ok", Value: 1.0}})
}

func (*recorder) Abilities() backend.Abilities { return backend.Abilities{} }
func (*recorder) Close() error                 { return nil }

// TestStatementsFollowOneAnother: whatever is sent at once in a transaction goes one by one, exactly one command begins it, and one that has to wait ends with
// its context.
func TestStatementsFollowOneAnother(t *testing.T) {
	b := &recorder{}
	e := &Executor{Backends: map[string]backend.Backend{"rs1": b}}
	lsid := with(nil, func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, "id", 1) })
	tx := NewTransaction(lsid, 5, true, nil)
	ctx := WithExchange(t.Context(), &Exchange{LSID: lsid, Transaction: tx})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			body := with(nil, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "find", fmt.Sprint(i)) })
			if _, err := e.Run(ctx, "rs1", &backend.Request{Body: body}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	begun := 0
	for _, body := range b.bodies {
		if _, begins := bson.Get(body, "startTransaction"); begins {
			begun++
		}
		if text(t, body, "txnNumber") != `{"$numberLong":"5"}` || text(t, body, "autocommit") != "false" {
			t.Errorf("sent %s", body)
		}
	}
	if _, first := bson.Get(b.bodies[0], "startTransaction"); begun != 1 || !first || b.most != 1 || len(b.bodies) != 50 {
		t.Errorf("%d commands, %d begin the transaction, %d at once", len(b.bodies), begun, b.most)
	}
	if err := tx.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.Run(ended, "rs1", &backend.Request{Body: b.bodies[0]}); !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("a statement that waits: %v", err)
	}
	tx.release()
}
