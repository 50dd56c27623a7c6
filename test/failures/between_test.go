package failures

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var everyKill = flag.Bool("every-kill", false, "kill gateways between every two parts of every command, instead of at some")

// killer kills a gateway at one part of a command.
type killer struct {
	mu        sync.Mutex
	processes []*process
	parts     int // seen of the command
	at        int // the part to kill at; 0: none
	when      moment
	killed    *process
}

// moment is where in a part's life its gateway is killed.
type moment int

const (
	neverRun moment = iota // before the part is run, which it never is
	runLate                // before it is run, which it is all the same
	justRun                // when it has been run, before it is answered
	moments
)

func (m moment) String() string {
	return [...]string{"before it was run", "before it was run late", "after it was run"}[m]
}

// before is a set's hook.
func (k *killer) before(c *conn, cmd *command) fault {
	if !writes[cmd.name] || !k.hits(c) || k.when == justRun {
		return fault{}
	}
	k.kill(c)
	if k.when == neverRun {
		return fault{kind: dropBefore}
	}
	return fault{}
}

// after is a set's hook.
func (k *killer) after(c *conn, cmd *command) {
	k.mu.Lock()
	hit := writes[cmd.name] && k.at != 0 && k.parts >= k.at && k.when == justRun && k.killed == nil
	k.mu.Unlock()
	if hit {
		k.kill(c)
	}
}

// hits counts a part and reports whether it is the one.
func (k *killer) hits(*conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parts++
	return k.parts == k.at
}

// kill kills the gateway that sent the command.
func (k *killer) kill(c *conn) {
	c.member.set.mu.Lock()
	app := c.app
	c.member.set.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.processes {
		if p.app == app {
			p.kill()
			k.killed = p
		}
	}
}

// aim has the next command's gateway killed at a part.
func (k *killer) aim(at int, when moment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parts, k.at, k.when, k.killed = 0, at, when, nil
}

// seen is how many parts the command had so far, and the gateway that was killed.
func (k *killer) seen() (int, *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.parts, k.killed
}

// counters a collection, over all of its partitions.
const counters = 8

// manyParts are commands that a driver sends again, on documents 0 to counters-1, and what each adds to them.
var manyParts = []struct {
	name string
	run  func(ctx context.Context, c *mongo.Collection) error
	adds func(id int) int
}{
	{"ordered updates", func(ctx context.Context, c *mongo.Collection) error { return addToAll(ctx, c, true) }, twice},
	{"unordered updates", func(ctx context.Context, c *mongo.Collection) error { return addToAll(ctx, c, false) }, twice},
	{"an update that looks for its document", func(ctx context.Context, c *mongo.Collection) error {
		result, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, addOne)
		return matched(result, err)
	}, only(1)},
	{"an upsert that finds its document", func(ctx context.Context, c *mongo.Collection) error {
		result, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 2}}, addOne, options.UpdateOne().SetUpsert(true))
		return matched(result, err)
	}, only(2)},
	{"a findAndModify that looks for its document", func(ctx context.Context, c *mongo.Collection) error {
		return c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 3}}, addOne).Err()
	}, only(3)},
	{"ordered inserts and deletes", func(ctx context.Context, c *mongo.Collection) error { return insertAndDelete(ctx, c, true) }, only(-1)},
	{"unordered inserts and deletes", func(ctx context.Context, c *mongo.Collection) error { return insertAndDelete(ctx, c, false) }, only(-1)},
}

func twice(int) int { return 2 }

func only(one int) func(int) int {
	return func(id int) int {
		if id == one {
			return 1
		}
		return 0
	}
}

func matched(result *mongo.UpdateResult, err error) error {
	if err == nil && result.MatchedCount != 1 {
		return fmt.Errorf("matched %d", result.MatchedCount)
	}
	return err
}

// addToAll adds to each counter twice, the partitions in turn.
func addToAll(ctx context.Context, c *mongo.Collection, ordered bool) error {
	var models []mongo.WriteModel
	for range 2 {
		for id := range counters {
			models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}}).SetUpdate(addOne))
		}
	}
	result, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered))
	if err == nil && result.MatchedCount != 2*counters {
		return fmt.Errorf("matched %d", result.MatchedCount)
	}
	return err
}

// insertAndDelete inserts documents that are not there and deletes them. One that an insert did twice, or a delete not at all, makes an error now or next time.
func insertAndDelete(ctx context.Context, c *mongo.Collection, ordered bool) error {
	var docs []any
	var models []mongo.WriteModel
	for id := counters; id < 2*counters; id++ {
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}, {Key: "t", Value: 0}})
		models = append(models, mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}}))
	}
	if _, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(ordered)); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	result, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered))
	if err == nil && result.DeletedCount != counters {
		return fmt.Errorf("deleted %d", result.DeletedCount)
	}
	return err
}

// TestGatewayKilledBetweenParts: a gateway is killed at each part of commands with many, before the part is run or after; the driver sends the command again
// through the other gateway. Every command succeeds, and the counters are exact.
func TestGatewayKilledBetweenParts(t *testing.T) {
	t.Parallel()
	sets := []*set{newSet(t, "one", 3), newSet(t, "two", 3)}
	k := &killer{}
	client := k.begin(t, sets)
	kills, skipped := 0, 0
	for _, name := range []string{"hash", "both"} {
		c := client.Database(database).Collection(name)
		want := make([]int, counters)
		for _, cmd := range manyParts {
			k.aim(0, neverRun)
			k.step(t, c, cmd.name, cmd.run, cmd.adds, want)
			parts, _ := k.seen()
			for at := 1; at <= parts; at++ {
				for when := range moments {
					if !*everyKill && rand.IntN(20) > 0 {
						skipped++
						continue
					}
					k.aim(at, when)
					k.step(t, c, fmt.Sprintf("%s, %s, its gateway killed at part %d %v", name, cmd.name, at, when), cmd.run, cmd.adds, want)
					if _, p := k.seen(); p != nil {
						p.start(t)
						kills++
					}
				}
			}
		}
	}
	if kills == 0 {
		t.Error("no gateway was killed")
	}
	t.Logf("gateways were killed at %d parts of commands, %d were passed over", kills, skipped)
}

// begin starts two gateways and makes the counters.
func (k *killer) begin(t *testing.T, sets []*set) *mongo.Client {
	t.Helper()
	for _, s := range sets {
		s.before, s.after = k.before, k.after
	}
	a := newProcess(t, "a", sets)
	k.makeCounters(t, connect(t, true, &gateway{relay: a.relay}))
	b := newProcess(t, "b", sets)
	k.processes = []*process{a, b}
	client := connect(t, true, &gateway{relay: a.relay}, &gateway{relay: b.relay})
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		client.Disconnect(now)
	})
	return client
}

func (k *killer) makeCounters(t *testing.T, client *mongo.Client) {
	t.Helper()
	defer client.Disconnect(t.Context())
	for _, name := range []string{"hash", "both"} {
		for id := range 2 * counters {
			c := client.Database(database).Collection(name)
			doc := bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}, {Key: "t", Value: 0}, {Key: "v", Value: 0}}
			if _, err := c.InsertOne(t.Context(), doc); err != nil {
				t.Fatalf("prepare: %v", err)
			}
			if id < counters {
				continue
			}
			if _, err := c.DeleteOne(t.Context(), doc); err != nil {
				t.Fatalf("prepare: %v", err)
			}
		}
	}
}

// step runs one command and compares the counters.
func (k *killer) step(t *testing.T, c *mongo.Collection, what string, run func(context.Context, *mongo.Collection) error, adds func(int) int, want []int) {
	t.Helper()
	if err := run(t.Context(), c); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for id := range want {
		want[id] += adds(id)
		var doc counter
		err := errors.New("not read")
		for err != nil && !mongo.IsTimeout(err) {
			err = c.FindOne(t.Context(), bson.D{{Key: "k", Value: id}}).Decode(&doc)
		}
		if doc.V != want[id] {
			t.Errorf("%s: counter %d is %d instead of %d (%v)", what, id, doc.V, want[id], err)
			want[id] = doc.V
		}
	}
}
