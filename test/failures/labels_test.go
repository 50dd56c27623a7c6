package failures

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/mongoerr"
)

// fails has the next data commands of a set fail, wherever they go.
func (s *set) fails(next ...fault) {
	for _, m := range s.members {
		m.change(func() { m.faults = slices.Clone(next) })
	}
}

func update(collection string, id int) bson.D {
	return bson.D{{Key: "update", Value: collection}, {Key: "updates", Value: bson.A{bson.D{
		{Key: "q", Value: bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}}}, {Key: "u", Value: addOne},
	}}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}}
}

// find reads a document's counter.
func (c *rawClient) count(collection string, id int) int {
	c.t.Helper()
	reply := c.run(bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: bson.D{{Key: "_id", Value: id}}}})
	docs, _ := reply["cursor"].(bson.D)
	for _, e := range docs {
		if batch, ok := e.Value.(bson.A); ok && len(batch) == 1 {
			for _, f := range batch[0].(bson.D) {
				if f.Key == "v" {
					return int(f.Value.(int32))
				}
			}
		}
	}
	c.t.Fatalf("%s has no counter %d: %v", collection, id, reply)
	return 0
}

// oneSet is a gateway over one set, with a counter 1 in d.plain and in d.hash.
func oneSet(t *testing.T, modern bool, more ...string) (*set, *gateway, *rawClient) {
	t.Helper()
	s := newSet(t, "one", 3)
	s.modern = modern
	g := newGateway(t, "g", []*set{s}, more...)
	t.Cleanup(g.close)
	raw := dialRaw(t, g)
	for _, name := range []string{"plain", "hash"} {
		for id := range documents {
			doc := bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}, {Key: "v", Value: int32(0)}}
			if reply := raw.run(bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: bson.A{doc}}}); reply["ok"] != 1.0 {
				t.Fatalf("prepare: %v", reply)
			}
		}
	}
	return s, g, raw
}

// TestStateChangesStayBehindTheGateway: whatever a member tells of itself, and however, a client that sent a retryable write is told to send it again, and
// nothing that it would take for news of the gateway.
func TestStateChangesStayBehindTheGateway(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{true, false} {
		s, _, raw := oneSet(t, modern)
		for _, collection := range []string{"plain", "hash"} {
			for _, code := range codesOf(modern) {
				for _, kind := range []faultKind{refuseBefore, refuseAfter, failConcern} {
					for _, retryable := range []bool{true, false} {
						cmd := update(collection, 1)
						if retryable {
							cmd = raw.numbered(cmd)
						}
						f := fault{kind: kind, code: code}
						s.fails(f, f) // the gateway's own second try fails as well
						reply := raw.run(cmd)
						s.fails()
						what := fmt.Sprintf("%s, %v, code %d %s, labels by the member: %v, retryable: %v: %v", collection, kind, code, code, modern, retryable, reply)
						checkCovered(t, what, reply, retryable)
					}
				}
			}
		}
	}
}

// codesOf are the codes to try. Of an old member, which does not say to which of its states an error belongs, a driver finds out by asking again, twice a
// second at most; so there is one.
func codesOf(modern bool) []mongoerr.Code {
	if modern {
		return stateChanges
	}
	return []mongoerr.Code{mongoerr.ShutdownInProgress}
}

func checkCovered(t *testing.T, what string, reply bson.M, retryable bool) {
	t.Helper()
	failure := reply
	if reply["ok"] == 1.0 {
		concern, ok := reply["writeConcernError"].(bson.D)
		if !ok {
			t.Errorf("no failure: %s", what)
			return
		}
		failure = bson.M{}
		for _, e := range concern {
			failure[e.Key] = e.Value
		}
	}
	labels, _ := reply["errorLabels"].(bson.A)
	const hostUnreachable = int32(6)
	switch {
	case failure["code"] != hostUnreachable || failure["codeName"] != "HostUnreachable":
		t.Errorf("not covered: %s", what)
	case strings.Contains(fmt.Sprint(failure["errmsg"]), "not master"):
		t.Errorf("told in words: %s", what)
	case reply["topologyVersion"] != nil:
		t.Errorf("a member's topologyVersion: %s", what)
	case slices.Contains(labels, any("RetryableWriteError")) != retryable:
		t.Errorf("labels: %s", what)
	case len(labels) > 1:
		t.Errorf("a label twice: %s", what)
	}
}

// TestOnceMore: one failure of a command that is safe to send again is the gateway's business; nothing is done twice.
func TestOnceMore(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{true, false} {
		s, _, raw := oneSet(t, modern)
		for _, collection := range []string{"plain", "hash"} {
			for _, kind := range []faultKind{dropBefore, dropAfter, refuseBefore, refuseAfter, failConcern} {
				for i, code := range codesOf(modern) {
					if i > 0 && kind < refuseBefore {
						break // a broken connection has no code
					}
					before := raw.count(collection, 2)
					s.fails(fault{kind: kind, code: code})
					if reply := raw.run(raw.numbered(update(collection, 2))); reply["ok"] != 1.0 || reply["n"] != int32(1) || reply["writeConcernError"] != nil {
						t.Errorf("%s, %v, %s: %v", collection, kind, code, reply)
					}
					s.fails(fault{kind: refuseBefore, code: code})
					if now := raw.count(collection, 2); now != before+1 {
						t.Errorf("%s, %v, %s: counted %d times", collection, kind, code, now-before)
					}
				}
			}
		}
	}
}

// TestNotOnceMore: a write that no server would know again is sent once, and its failure told.
func TestNotOnceMore(t *testing.T) {
	t.Parallel()
	s, _, raw := oneSet(t, true)
	for _, collection := range []string{"plain", "hash"} {
		for _, kind := range []faultKind{dropBefore, dropAfter, refuseAfter} {
			before := raw.count(collection, 3)
			s.fails(fault{kind: kind, code: stateChanges[0]})
			reply := raw.run(update(collection, 3))
			want := before
			if kind != dropBefore {
				want++
			}
			if now := raw.count(collection, 3); reply["ok"] != 0.0 || now != want {
				t.Errorf("%s, %v: %d instead of %d, %v", collection, kind, now, want, reply)
			}
		}
	}
}

// TestNewPrimary: commands wait for a new primary; also those that no server would know again, since they were not sent.
func TestNewPrimary(t *testing.T) {
	t.Parallel()
	s, _, raw := oneSet(t, true)
	for n, leave := range []func(*member){func(m *member) { m.stepDown(opTime) }, (*member).down} {
		before := raw.count("hash", 0)
		m := s.primary()
		leave(m)
		if reply := raw.run(raw.numbered(update("hash", 0))); reply["ok"] != 1.0 {
			t.Errorf("%d: %v", n, reply)
		}
		if reply := raw.run(update("hash", 0)); reply["ok"] != 1.0 {
			t.Errorf("%d, without a number: %v", n, reply)
		}
		if now := raw.count("hash", 0); now != before+2 {
			t.Errorf("%d: counted %d times", n, now-before)
		}
		s.heal()
	}
}

// TestHalfOfACommand: when some parts of a command were done and others failed, the command as a whole is to be sent again, and what was done is not done
// again; whatever the parts that failed said.
func TestHalfOfACommand(t *testing.T) {
	t.Parallel()
	for _, kind := range []faultKind{dropBefore, dropAfter, refuseBefore, refuseAfter, failConcern, failStatement} {
		for _, ordered := range []bool{true, false} {
			s, _, raw := oneSet(t, true)
			statements := bson.A{}
			for range 2 {
				for id := range documents {
					statements = append(statements, bson.D{{Key: "q", Value: bson.D{{Key: "k", Value: id}}}, {Key: "u", Value: addOne}})
				}
			}
			cmd := raw.numbered(bson.D{{Key: "update", Value: "hash"}, {Key: "updates", Value: statements}, {Key: "ordered", Value: ordered}})
			f := fault{kind: kind, code: stateChanges[0]}
			s.fails(fault{}, f, f, f, f)
			reply := raw.run(cmd)
			s.fails()
			labels, _ := reply["errorLabels"].(bson.A)
			if !slices.Contains(labels, any("RetryableWriteError")) {
				// Ordered parts of one statement each have no statement in the middle.
				if !ordered || kind != failStatement {
					t.Errorf("%v, ordered %v: %v", kind, ordered, reply)
				}
			}
			again := raw.run(cmd)
			if again["ok"] != 1.0 || again["n"] != int32(2*documents) || again["writeErrors"] != nil || again["writeConcernError"] != nil {
				t.Errorf("%v, ordered %v, sent again: %v", kind, ordered, again)
			}
			for id := range documents {
				if n := raw.count("hash", id); n != 2 {
					t.Errorf("%v, ordered %v: document %d counted %d times instead of 2", kind, ordered, id, n)
				}
			}
		}
	}
}

// TestDriverKeepsItsGateway: a driver neither forgets a gateway nor closes its connections for what members tell of themselves.
func TestDriverKeepsItsGateway(t *testing.T) {
	t.Parallel()
	s, g, _ := oneSet(t, false)
	var cleared, unknown, connected atomic.Int32
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + g.relay.listener.Addr().String() + "/?w=majority").
		SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
			if e.Type == event.ConnectionPoolCleared {
				cleared.Add(1)
			}
		}}).
		SetServerMonitor(&event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			if e.NewDescription.Kind == "Unknown" {
				unknown.Add(1)
			} else {
				connected.Add(1)
			}
		}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	for _, code := range codesOf(false) {
		for _, kind := range []faultKind{refuseBefore, refuseAfter, failConcern} {
			for _, name := range []string{"plain", "hash"} {
				f := fault{kind: kind, code: code}
				s.fails(f, f) // both tries of the gateway fail; the driver's second does not
				if _, err := client.Database(database).Collection(name).UpdateOne(t.Context(), bson.D{{Key: "k", Value: 1}}, addOne); err != nil {
					t.Errorf("%s, %v, %s: %v", name, kind, code, err)
				}
				s.fails()
			}
		}
	}
	if connected.Load() == 0 || cleared.Load() > 0 || unknown.Load() > 0 {
		t.Errorf("the driver learnt of the gateway %d times, cleared its pool %d times and forgot it %d times", connected.Load(), cleared.Load(), unknown.Load())
	}
}
