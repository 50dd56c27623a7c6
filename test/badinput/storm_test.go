package badinput

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// stormy are the errors that commands may meet whose collection, index or cursor others take away: NamespaceNotFound, IndexNotFound, CursorNotFound,
// NamespaceExists, QueryPlanKilled, CursorKilled, a build that is interrupted by a drop, and StaleConfig, of a write whose partitions were dropped as fast as
// they were made.
var stormy = []int{26, 27, 43, 48, 175, 237, 13388}

// Index builds, drops of indexes, collections and databases, renames, writers and cursors, all on the same few collections at once: each gets an
// answer, none other than those of stormy; and afterwards there is what the last writer left, whole.
func TestStormOfChanges(t *testing.T) {
	client := serve(t)
	names := []string{"plain", "other", "byhash", "byboth"}
	stop := make(chan struct{})
	var all sync.WaitGroup
	workers := []func(rng *rand.Rand, c *mongo.Collection) error{
		insertSome, insertSome, updateSome, buildIndex, dropIndex, readOn, readOn, dropOne, renameOne, dropAll,
	}
	for i, work := range workers {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c := client.Database("d").Collection(names[rng.IntN(len(names))])
				if err := work(rng, c); err != nil && !slices.Contains(stormy, codeOf(err)) {
					t.Errorf("worker %d on %s: %v", i, c.Name(), err)
					return
				}
			}
		})
	}
	time.Sleep(3 * time.Second) // as long as the storm lasts, no matter how long
	close(stop)
	all.Wait()
	for _, name := range names {
		c := client.Database("d").Collection(name)
		stored(t, c, bson.M{"_id": "last", "at": at(1), "h": 1})
		var v struct{ Valid bool }
		if err := c.Database().RunCommand(t.Context(), bson.D{{Key: "validate", Value: name}}).Decode(&v); err != nil || !v.Valid {
			t.Errorf("%s: valid %v, %v", name, v.Valid, err)
		}
		if n, err := c.CountDocuments(t.Context(), bson.M{"_id": "last"}); n != 1 || err != nil {
			t.Errorf("%s: %d documents, %v", name, n, err)
		}
	}
	var status struct{ Asserts struct{ Msg int } }
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil || status.Asserts.Msg != 0 {
		t.Errorf("%d panics, %v", status.Asserts.Msg, err)
	}
}

func insertSome(rng *rand.Rand, c *mongo.Collection) error {
	var docs []any
	for range 20 {
		docs = append(docs, bson.M{"at": at(1 + rng.IntN(3)), "h": rng.IntN(10), "n": rng.IntN(5), "tags": bson.A{1, rng.IntN(3)}})
	}
	_, err := c.InsertMany(context.Background(), docs)
	return err
}

func updateSome(rng *rand.Rand, c *mongo.Collection) error {
	_, err := c.UpdateMany(context.Background(), bson.M{"n": rng.IntN(5)}, bson.M{"$inc": bson.M{"n": 1}})
	return err
}

func buildIndex(rng *rand.Rand, c *mongo.Collection) error {
	_, err := c.Indexes().CreateOne(context.Background(), mongo.IndexModel{
		Keys: bson.D{{Key: []string{"n", "tags"}[rng.IntN(2)], Value: 1}, {Key: "h", Value: -1}}, Options: options.Index().SetName(fmt.Sprint("i", rng.IntN(2))),
	})
	if code := codeOf(err); code == 85 || code == 86 { // the name or the keys are taken
		return nil
	}
	return err
}

func dropIndex(rng *rand.Rand, c *mongo.Collection) error {
	if rng.IntN(3) == 0 {
		return c.Indexes().DropAll(context.Background())
	}
	return c.Indexes().DropOne(context.Background(), fmt.Sprint("i", rng.IntN(2)))
}

func readOn(rng *rand.Rand, c *mongo.Collection) error {
	cursor, err := c.Find(context.Background(), bson.M{"n": bson.M{"$gte": 0}}, options.Find().SetBatchSize(int32(1+rng.IntN(5))).SetSort(bson.D{{Key: "n", Value: 1}}))
	if err != nil {
		return err
	}
	defer cursor.Close(context.Background())
	for n := 0; n < 50 && cursor.Next(context.Background()); n++ {
	}
	return cursor.Err()
}

func dropOne(rng *rand.Rand, c *mongo.Collection) error {
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // so that there is something to drop
	return c.Drop(context.Background())
}

func dropAll(rng *rand.Rand, c *mongo.Collection) error {
	time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
	return c.Database().Drop(context.Background())
}

func renameOne(_ *rand.Rand, c *mongo.Collection) error {
	return c.Database().Client().Database("admin").RunCommand(context.Background(),
		bson.D{{Key: "renameCollection", Value: "d.plain"}, {Key: "to", Value: "d.other"}, {Key: "dropTarget", Value: true}}).Err()
}
