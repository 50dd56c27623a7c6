package failures

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestGuardOfSilentBackend: where a backend does not tell how large a collection is, a command waits for that once, however many statements it has, and runs.
func TestGuardOfSilentBackend(t *testing.T) {
	t.Parallel()
	s, _, raw := oneSet(t, true, "guard: {documents: 1, remove: log}\n")
	var asked atomic.Int32
	s.before = func(c *conn, cmd *command) fault {
		if cmd.name == "count" {
			asked.Add(1)
			s.hold(c, cmd)
		}
		return fault{}
	}
	t.Cleanup(s.letAll)
	var statements bson.A
	for i := range 5 {
		statements = append(statements, bson.D{{Key: "q", Value: bson.D{{Key: fmt.Sprintf("field%d", i), Value: 1}}}, {Key: "limit", Value: 0}})
	}
	if reply := raw.run(bson.D{{Key: "delete", Value: "plain"}, {Key: "deletes", Value: statements}}); reply["ok"] != 1.0 {
		t.Errorf("the reply is %v", reply)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the backend was asked %d times", n)
	}
}
