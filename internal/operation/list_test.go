package operation

import (
	"context"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/deployment"
)

// crowded is a deployment of one scripted member that shows what it runs in two batches, until that is killed.
type crowded struct {
	t      *testing.T
	killed bool
}

func (*crowded) Members(context.Context) ([]deployment.Member, error) {
	return []deployment.Member{{Host: "a", Set: "rs", State: deployment.Primary}}, nil
}

func (c *crowded) On(context.Context, string) (backend.Backend, error) { return c, nil }
func (*crowded) Abilities() backend.Abilities                          { return backend.Abilities{} }
func (*crowded) Close() error                                          { return nil }

func (c *crowded) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	switch name, _, _ := bson.First(req.Body); name {
	case "aggregate":
		return bsontest.Doc(c.t, `{"cursor": {"firstBatch": [{"opid": 1, "active": true, "command": {"find": "msg"}}], "id": {"$numberLong": "9"}, "ns": "admin.$cmd.aggregate"}, "ok": 1}`), nil
	case "getMore":
		collection, _ := bson.Get(req.Body, "collection")
		if text, _ := collection.StringValueOK(); text != "$cmd.aggregate" {
			c.t.Errorf("getMore asks for %q, want the cursor's own collection", text)
		}
		second := `{"opid": 2, "active": true, "command": {"delete": "msg", "comment": "oxbow:job:a"}}`
		if c.killed {
			second = ""
		}
		return bsontest.Doc(c.t, `{"cursor": {"nextBatch": [`+second+`], "id": {"$numberLong": "0"}, "ns": "admin.$cmd.aggregate"}, "ok": 1}`), nil
	case "killOp":
		op, _ := bson.Get(req.Body, "op")
		if id, _ := op.AsInt64OK(); id != 2 {
			c.t.Errorf("operation %d was killed, want 2", id)
		}
		c.killed = true
		return bsontest.Doc(c.t, `{"ok": 1}`), nil
	default:
		c.t.Errorf("%s was sent", name)
		return nil, backend.ErrUnavailable
	}
}

// TestKillTaggedReadsAllBatches: what carries a tag is found and killed also where the member shows it in a later batch than the first.
func TestKillTaggedReadsAllBatches(t *testing.T) {
	c := &crowded{t: t}
	if err := KillTagged(t.Context(), c, "oxbow:job:a"); err != nil || !c.killed {
		t.Errorf("killed %v, %v; want true without an error", c.killed, err)
	}
}
