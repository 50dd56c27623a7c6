package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/deployment"
)

// pair is a deployment of two scripted members, each of which runs a delete with a tag until some time after it was killed.
type pair struct {
	t   *testing.T
	low map[string]time.Duration // how long a killed operation goes on, by member
	out map[string]time.Duration // how long a member answers nothing, from the first kill on
	no  map[string]bool          // members that refuse kills

	mu     sync.Mutex
	first  time.Time            // when the first was killed
	killed map[string]time.Time // by member
}

func (p *pair) Members(context.Context) ([]deployment.Member, error) {
	return []deployment.Member{{Host: "a", Set: "rs", State: deployment.Primary}, {Host: "b", Set: "rs", State: deployment.Secondary}}, nil
}

func (p *pair) On(_ context.Context, host string) (backend.Backend, error) { return one{p, host}, nil }

// one is a member of a pair.
type one struct {
	pair *pair
	host string
}

func (one) Abilities() backend.Abilities { return backend.Abilities{} }
func (one) Close() error                 { return nil }

func (o one) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	p := o.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.first.IsZero() && time.Since(p.first) < p.out[o.host] {
		return nil, fmt.Errorf("%w: connection reset by %s", backend.ErrUnavailable, o.host)
	}
	at, killed := p.killed[o.host]
	switch name, _, _ := bson.First(req.Body); name {
	case "aggregate":
		running := `{"opid": 7, "active": true, "command": {"delete": "msg", "comment": "oxbow:job:a"}}`
		if killed && time.Since(at) >= p.low[o.host] {
			running = ""
		}
		return bsontest.Doc(p.t, `{"cursor": {"firstBatch": [`+running+`], "id": {"$numberLong": "0"}, "ns": "admin.$cmd.aggregate"}, "ok": 1}`), nil
	case "killOp":
		if p.no[o.host] {
			return bsontest.Doc(p.t, `{"ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized"}`), nil
		}
		if !killed {
			p.killed[o.host] = time.Now()
		}
		if p.first.IsZero() {
			p.first = time.Now()
		}
		return bsontest.Doc(p.t, `{"ok": 1}`), nil
	default:
		p.t.Errorf("%s was sent", name)
		return nil, backend.ErrUnavailable
	}
}

// TestKillTagged: whoever kills waits for members that are slow to let go, and for one that is away while it steps down, and names what is not gone when the time is
// over.
func TestKillTagged(t *testing.T) {
	for _, test := range []*struct {
		name  string
		pair  pair
		after time.Duration // at least
		want  string        // in the error; "": none
	}{
		{name: "at once"},
		{name: "slow to die", pair: pair{low: map[string]time.Duration{"b": 20 * time.Second}}, after: 20 * time.Second},
		{name: "never confirmed", pair: pair{low: map[string]time.Duration{"a": time.Hour}}, after: 30 * time.Second, want: "operation 7 on a was killed and still runs: "},
		{name: "away for a while", pair: pair{out: map[string]time.Duration{"a": 4 * time.Second}}, after: 4 * time.Second},
		{name: "away", pair: pair{out: map[string]time.Duration{"a": time.Hour}}, after: KillPatience, want: "a does not tell: "},
		{name: "refused", pair: pair{no: map[string]bool{"a": true}}, after: KillPatience, want: "kill operation 7 on a: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &test.pair
				p.t, p.killed = t, map[string]time.Time{}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := KillTagged(ctx, p, "oxbow:job:a")
				if took := time.Since(began); took < test.after || took > test.after+time.Second {
					t.Errorf("it took %v", took)
				}
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v, not %q", err, test.want)
				}
				if test.name == "never confirmed" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				if _, killed := p.killed["b"]; !killed {
					t.Error("what runs on the other member was not killed")
				}
			})
		})
	}
}
