package overhead

import (
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// TestCalls: the prepared messages do what they say, on every way and collection: else the benchmark would measure errors.
func TestCalls(t *testing.T) {
	d := deploy(t)
	fill(t, d)
	for _, layout := range []string{"plain", "time", "hash"} {
		for _, o := range []struct {
			name string
			op   operation
			n    int64 // what the reply counts; 0: it has a document
		}{
			{"find", find, 0}, {"updateOne", updateOne, 1}, {"insertOne", insertOf(1, true), 1}, {"insert", insertOf(batch, false), batch},
		} {
			gateway, relay, direct := ways(t, d, layout, 1, o.op)
			for _, w := range []*way{gateway, relay, direct} {
				c := w.clients[0]
				for range 2 {
					c.call.vary()
					reply, err := c.roundTrip(c.call.message)
					if err != nil {
						t.Fatal(err)
					}
					check(t, o.name+" "+layout, reply, o.n)
				}
			}
		}
	}
}

func check(t *testing.T, name string, reply bson.Document, n int64) {
	t.Helper()
	if err := backend.Check(reply); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if n > 0 {
		v, _ := bson.Get(reply, "n")
		if got, _ := v.AsInt64OK(); got != n {
			t.Errorf("%s counts %d: %v", name, got, reply)
		}
		return
	}
	c, err := backend.ParseCursorReply(reply)
	if err != nil || len(c.Batch) < 200 {
		t.Errorf("%s finds %v, %v", name, c.Batch, err)
	}
}
