package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// operator makes, hides, brings back and drops the partitions of crash.turned, drops crash.gone whole, and makes and drops indexes where others
// write. It sends nothing again.
type operator struct {
	db   *mongo.Database
	base time.Time
	rng  *rand.Rand

	parts   map[partKey]*part
	gone    dropped
	indexes map[indexKey]*toggle
	next    int
	done    int
	cut     int
}

// partKey is a partition of crash.turned.
type partKey struct {
	start time.Time
	slot  int32
}

// part is what the operator knows of one. State "" is none.
type part struct {
	state string
	after string // what the command that was cut off, if one was, makes of it; else as state
	docs  map[string]bool
}

// dropped is what the operator knows of crash.gone.
type dropped struct {
	docs    []string
	dropped bool // a drop was cut off
}

type indexKey struct{ collection, name string }

// toggle is an index that comes and goes.
type toggle struct {
	keys         bson.D
	unique       bool
	there, after bool // after: as with part
}

func newOperator(client *mongo.Client, base time.Time, rng *rand.Rand) *operator {
	o := &operator{db: client.Database("crash"), base: base, rng: rng, parts: map[partKey]*part{}, indexes: map[indexKey]*toggle{}}
	for _, name := range []string{"plain", "minutes", "hashed", "both"} {
		o.indexes[indexKey{name, "extra"}] = &toggle{keys: bson.D{{Key: "tags", Value: 1}, {Key: "n", Value: -1}}}
	}
	o.indexes[indexKey{"both", "only"}] = &toggle{keys: bson.D{{Key: "at", Value: 1}, {Key: "h", Value: 1}, {Key: "_id", Value: 1}}, unique: true}
	return o
}

// step does one thing.
func (o *operator) step(t *testing.T) {
	err := []func() error{o.insert, o.turn, o.turn, o.toggleIndex, o.dropCollection}[o.rng.IntN(5)]()
	if err == nil {
		o.done++
		return
	}
	o.cut++
	if answered(err) {
		t.Errorf("operator: %v", err)
	}
}

func (o *operator) newIDs(n int) (ids []string) {
	for range n {
		o.next++
		ids = append(ids, fmt.Sprintf("operator-%06d", o.next))
	}
	return ids
}

// insert fills a minute of crash.turned whose partitions are all in sight or not made.
func (o *operator) insert() error {
	start := o.base.Add(-time.Duration(5+o.rng.IntN(8)) * time.Minute)
	var docs []bson.D
	keys := []partKey{{start, 0}, {start, 1}}
	for _, k := range keys {
		if o.parts[k] == nil {
			o.parts[k] = &part{docs: map[string]bool{}}
		}
		if p := o.parts[k]; p.state == "hidden" || p.state != p.after {
			return nil
		}
	}
	ids := o.newIDs(6)
	for i, id := range ids {
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "at", Value: start.Add(time.Duration(i) * time.Second)}, {Key: "h", Value: i % 2}})
	}
	_, err := o.db.Collection("turned").InsertMany(context.Background(), docs)
	for i, id := range ids {
		o.parts[keys[i%2]].docs[id] = err == nil
	}
	for _, k := range keys {
		if o.parts[k].after = "active"; err == nil {
			o.parts[k].state = "active"
		}
	}
	return err
}

// turn hides, brings back or drops a partition.
func (o *operator) turn() error {
	var keys []partKey
	for k, p := range o.parts {
		if p.state != "" && p.state == p.after {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.SortFunc(keys, func(a, b partKey) int { return 2*a.start.Compare(b.start) + int(a.slot-b.slot) })
	k := keys[o.rng.IntN(len(keys))]
	p := o.parts[k]
	list, err := partitions(o.db, "turned")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(l partition) bool { return l.Start.Equal(k.start) && l.Slot == k.slot })
	if i < 0 {
		return fmt.Errorf("partition %v is not listed: %w", k, errListed)
	}
	command := "dropPartition"
	switch {
	case o.rng.IntN(3) == 0:
		p.after = ""
	case p.state == "active":
		command, p.after = "hidePartition", "hidden"
	default:
		command, p.after = "undoPartition", "active"
	}
	err = o.db.RunCommand(context.Background(), bson.D{{Key: command, Value: "turned"}, {Key: "partition", Value: list[i].Name}}).Err()
	if err == nil {
		p.settle(p.after)
	}
	return err
}

// errListed makes a missing partition an answer of the server, not a cut connection.
var errListed = mongo.CommandError{Code: 26, Name: "NamespaceNotFound", Message: "not in the list"}

// settle notes what a partition is.
func (p *part) settle(state string) {
	p.state, p.after = state, state
	if state == "" {
		clear(p.docs)
	}
}

func (o *operator) toggleIndex() error {
	all := []indexKey{{"plain", "extra"}, {"minutes", "extra"}, {"hashed", "extra"}, {"both", "extra"}, {"both", "only"}}
	k := all[o.rng.IntN(len(all))]
	i := o.indexes[k]
	if i.there != i.after {
		return nil
	}
	i.after = !i.there
	var err error
	if view := o.db.Collection(k.collection).Indexes(); i.there {
		err = view.DropOne(context.Background(), k.name)
	} else {
		opts := options.Index().SetName(k.name)
		if i.unique {
			opts.SetUnique(true)
		}
		_, err = view.CreateOne(context.Background(), mongo.IndexModel{Keys: i.keys, Options: opts})
	}
	if err == nil {
		i.there = i.after
	}
	return err
}

// dropCollection fills crash.gone and drops it.
func (o *operator) dropCollection() error {
	if o.gone.dropped {
		return nil
	}
	var docs []bson.D
	ids := o.newIDs(4)
	for i, id := range ids {
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "at", Value: o.base.Add(-time.Duration(i) * time.Minute)}, {Key: "h", Value: i}})
	}
	c := o.db.Collection("gone")
	if _, err := c.InsertMany(context.Background(), docs); err != nil {
		o.gone.dropped = true // as good as: any of them may be there
		return err
	}
	o.gone.docs = append(o.gone.docs, ids...)
	if o.rng.IntN(2) == 0 {
		return nil
	}
	o.gone.dropped = true
	if err := c.Drop(context.Background()); err != nil {
		return err
	}
	o.gone = dropped{}
	return nil
}

// partition is one of listPartitions' answer.
type partition struct {
	Name    string    `bson:"name"`
	Backend string    `bson:"backend"`
	State   string    `bson:"state"`
	Start   time.Time `bson:"start"`
	End     time.Time `bson:"end"`
	Slot    int32     `bson:"slot"`
	Count   int64     `bson:"count"`
}

func partitions(db *mongo.Database, collection string) (list []partition, err error) {
	cursor, err := db.RunCommandCursor(context.Background(), bson.D{{Key: "listPartitions", Value: collection}, {Key: "stats", Value: true}, {Key: "cursor", Value: bson.D{}}})
	if err == nil {
		err = cursor.All(context.Background(), &list)
	}
	return list, err
}
