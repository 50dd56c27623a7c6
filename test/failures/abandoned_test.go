package failures

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/mongoerr"
)

// updates is a command that changes every document of d.hash: with one statement for all, or with one after the other.
func updates(multi bool) bson.D {
	statements := bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: addOne}, {Key: "multi", Value: true}}}
	if !multi {
		statements = nil
		for id := range documents {
			statements = append(statements, bson.D{{Key: "q", Value: bson.D{{Key: "k", Value: id}}}, {Key: "u", Value: addOne}})
		}
	}
	return bson.D{{Key: "update", Value: "hash"}, {Key: "updates", Value: statements}}
}

// holdUpdates keeps updates running until they are killed or let go.
func (s *set) holdUpdates() {
	s.before = func(c *conn, cmd *command) fault {
		if cmd.name == "update" && s.hold(c, cmd) {
			return fault{kind: refuseBefore, code: mongoerr.Interrupted}
		}
		return fault{}
	}
}

// TestAbandonedIsFinished: what a client that is gone has begun to write goes on to its end, with the parts that had not been sent.
func TestAbandonedIsFinished(t *testing.T) {
	t.Parallel()
	for _, multi := range []bool{true, false} {
		s, g, raw := oneSet(t, true)
		s.holdUpdates()
		leaving := dialRaw(t, g)
		leaving.send(updates(multi))
		parts := 1
		if multi {
			parts = documents
		}
		s.awaitHeld(parts)
		leaving.nc.Close()
		time.Sleep(600 * time.Millisecond) // in which the gateway looks after clients twice
		s.letAll()
		for id := range documents {
			for raw.count("hash", id) != 1 { // for ever, if it is never done
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// TestAbandonedIsKilled: with abandoned: kill it is ended where it runs, and nothing more of it is sent.
func TestAbandonedIsKilled(t *testing.T) {
	t.Parallel()
	for _, multi := range []bool{true, false} {
		s, g, raw := oneSet(t, true, "abandoned: kill\n")
		s.holdUpdates()
		leaving := dialRaw(t, g)
		leaving.send(updates(multi))
		parts := 1
		if multi {
			parts = documents
		}
		s.awaitHeld(parts)
		leaving.nc.Close()
		checkKilled(t, s, raw)
	}
}

// checkKilled waits until the commands held are killed, and checks that they have done nothing and that nothing comes after them.
func checkKilled(t *testing.T, s *set, raw *rawClient) {
	t.Helper()
	s.awaitHeld(0) // for ever, if they are not killed
	s.letAll()
	if reply := raw.run(updates(true)); reply["n"] != int32(documents) {
		t.Errorf("an update of all: %v", reply)
	}
	for id := range documents {
		if n := raw.count("hash", id); n != 1 {
			t.Errorf("document %d was changed %d times, the last time by the check", id, n)
		}
	}
}

// TestKilledOnTheGateway: a write that ends on the gateway, by killOp or by its time, ends where it runs.
func TestKilledOnTheGateway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killOp", "maxTimeMS"} {
		s, g, raw := oneSet(t, true)
		s.holdUpdates()
		doomed, cmd := dialRaw(t, g), updates(true)
		if how == "maxTimeMS" {
			cmd = append(cmd, bson.E{Key: "maxTimeMS", Value: 300})
		}
		ended := make(chan bson.M)
		go func() { ended <- doomed.run(cmd) }()
		s.awaitHeld(documents)
		if how == "killOp" {
			killUpdate(t, raw)
		}
		if reply := <-ended; reply["ok"] != 0.0 {
			t.Errorf("%s: %v", how, reply)
		}
		checkKilled(t, s, raw)
	}
}

// killUpdate kills the update that the gateway runs.
func killUpdate(t *testing.T, raw *rawClient) {
	t.Helper()
	raw.database = "admin"
	defer func() { raw.database = database }()
	running := raw.run(bson.D{{Key: "currentOp", Value: 1}, {Key: "op", Value: "update"}})
	list, _ := running["inprog"].(bson.A)
	if len(list) != 1 {
		t.Fatalf("running: %v", running)
	}
	for _, e := range list[0].(bson.D) {
		if e.Key == "opid" {
			raw.run(bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: e.Value}})
		}
	}
}
