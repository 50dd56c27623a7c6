package failures

import (
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
)

// TestUnsatisfiablePreference: commands whose read preference no member fits fail by themselves, and keep no others from a deployment that is well.
func TestUnsatisfiablePreference(t *testing.T) {
	t.Parallel()
	s := newSet(t, "one", 3)
	b, err := remote.Open(strings.Replace(s.uri("prefers"), "serverSelectionTimeoutMS=5000", "serverSelectionTimeoutMS=5500", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	run := func(more ...bson.E) error {
		body, err := bson.Marshal(append(bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: database}}, more...))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := b.Run(t.Context(), &backend.Request{Body: body})
		if err == nil {
			err = backend.Check(reply)
		}
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	nowhere := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: bson.A{bson.D{{Key: "dc", Value: "nowhere"}}}}}}
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			if err := run(nowhere); err == nil {
				t.Error("a member without the tag was asked")
			}
		})
	}
	asking.Wait()
	if circuit := b.Figures().Circuit; circuit != "closed" {
		t.Errorf("the circuit is %s", circuit)
	}
	if err := run(); err != nil {
		t.Errorf("a command for the primary: %v", err)
	}
}
