package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// check compares everything with what its writers know. Nobody writes meanwhile, except retention to crash.kept.
func (r *rig) check(t *testing.T, where string) {
	t.Helper()
	db := r.client.Database("crash")
	for _, name := range []string{"plain", "minutes", "hashed", "both", "own", "kept", "turned", "gone"} {
		where := where + ", " + name
		found := all(t, where, db.Collection(name))
		figures(t, where, db.Collection(name), len(found), name == "kept")
		if name != "plain" {
			laidOut(t, where, db, name, found)
		}
		documents := map[string]document{}
		for id, raw := range found {
			var d document
			if err := bson.Unmarshal(raw, &d); err != nil {
				t.Errorf("%s: %s: %v", where, id, err)
			}
			documents[id] = d
		}
		for _, w := range r.writers {
			if w.collection.Name() == name {
				w.check(t, where, documents)
			}
		}
		if c := r.counters[name]; c != nil {
			for i := range counterDocs {
				n, _ := found[fmt.Sprint("counter", i)].Lookup("c").AsInt64OK()
				c.check(t, where, i, int(n))
			}
		}
		switch name {
		case "turned":
			r.operator.checkTurned(t, where, db, found)
		case "gone":
			r.operator.checkGone(t, where, db, found)
		}
	}
	r.operator.checkIndexes(t, where, db)
	physical(t, where, r.client)
}

// all reads a collection, and again from its last index if it has one.
func all(t *testing.T, where string, c *mongo.Collection) map[string]bson.Raw {
	t.Helper()
	found := map[string]bson.Raw{}
	cursor, err := c.Find(context.Background(), bson.D{})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	var docs []bson.Raw
	if err := cursor.All(context.Background(), &docs); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, d := range docs {
		id := d.Lookup("_id").StringValue()
		if found[id] != nil {
			t.Errorf("%s: %s is there twice", where, id)
		}
		found[id] = d
	}
	return found
}

// figures compares the counters and indexes with the documents. In a collection whose partitions go meanwhile only the indexes count.
func figures(t *testing.T, where string, c *mongo.Collection, documents int, moving bool) {
	t.Helper()
	var v struct {
		Valid    bool           `bson:"valid"`
		Records  int            `bson:"nrecords"`
		Errors   []string       `bson:"errors"`
		PerIndex map[string]int `bson:"keysPerIndex"`
	}
	err := c.Database().RunCommand(context.Background(), bson.D{{Key: "validate", Value: c.Name()}}).Decode(&v)
	if missing := (mongo.CommandError{}); err != nil && asCommand(err, &missing) && missing.Code == 26 && documents == 0 {
		return
	}
	if err != nil {
		t.Errorf("%s: validate: %v", where, err)
		return
	}
	if !v.Valid || len(v.Errors) > 0 {
		t.Errorf("%s: validate: %q", where, v.Errors)
	}
	if moving {
		return
	}
	var n struct {
		N int `bson:"n"`
	}
	if err := c.Database().RunCommand(context.Background(), bson.D{{Key: "count", Value: c.Name()}}).Decode(&n); err != nil {
		t.Errorf("%s: count: %v", where, err)
	}
	if n.N != documents {
		t.Errorf("%s: count says %d, a scan finds %d", where, n.N, documents)
	}
}

func asCommand(err error, to *mongo.CommandError) bool {
	e, ok := err.(mongo.CommandError)
	if ok {
		*to = e
	}
	return ok
}

// laidOut compares the partitions in sight with the collection.
func laidOut(t *testing.T, where string, db *mongo.Database, name string, found map[string]bson.Raw) {
	t.Helper()
	list, err := partitions(db, name)
	if err != nil {
		t.Errorf("%s: list partitions: %v", where, err)
		return
	}
	if name == "kept" {
		return // they go while we look
	}
	total := int64(0)
	seen := map[string]bool{}
	for _, p := range list {
		if p.State != "active" && p.State != "hidden" {
			t.Errorf("%s: partition %s is %s after the start", where, p.Name, p.State)
		}
		if p.State != "active" {
			continue
		}
		total += p.Count
		if p.Backend != "a" {
			continue // its name is looked up on the database's own backend
		}
		database, collection, _ := strings.Cut(p.Name, ".")
		for id, d := range all(t, where, db.Client().Database(database).Collection(collection)) {
			if seen[id] = true; string(found[id]) != string(d) {
				t.Errorf("%s: %s lies in %s otherwise than in the collection", where, id, p.Name)
			}
		}
	}
	if total != int64(len(found)) {
		t.Errorf("%s: its partitions count %d documents, a scan finds %d", where, total, len(found))
	}
	if name != "hashed" && len(seen) != len(found) {
		t.Errorf("%s: its partitions hold %d documents, a scan finds %d", where, len(seen), len(found))
	}
}

// checkTurned compares the partitions with what the operator was told.
func (o *operator) checkTurned(t *testing.T, where string, db *mongo.Database, found map[string]bson.Raw) {
	t.Helper()
	list, err := partitions(db, "turned")
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	expected := 0
	for k, p := range o.parts {
		state := ""
		for _, l := range list {
			if l.Start.Equal(k.start) && l.Slot == k.slot {
				state = l.State
			}
		}
		if state != p.state && state != p.after {
			t.Errorf("%s: partition %v is %q, want %q or %q", where, k, state, p.state, p.after)
		}
		for id, sure := range p.docs {
			_, there := found[id]
			if there && state != "active" || !there && sure && state == "active" {
				t.Errorf("%s: document %s of partition %v, which is %q: found %v", where, id, k, state, there)
			}
			if there {
				expected++
			}
			if state == "active" {
				if p.docs[id] = true; !there {
					delete(p.docs, id)
				}
			}
		}
		p.settle(state)
	}
	if expected != len(found) {
		t.Errorf("%s: %d documents, of which %d are the operator's", where, len(found), expected)
	}
}

// checkGone looks whether a drop happened as a whole.
func (o *operator) checkGone(t *testing.T, where string, db *mongo.Database, found map[string]bson.Raw) {
	t.Helper()
	there := 0
	for _, id := range o.gone.docs {
		if found[id] != nil {
			there++
		}
	}
	if there != len(o.gone.docs) && !(o.gone.dropped && there == 0) {
		t.Errorf("%s: %d of %d documents are left (drop cut off: %v)", where, there, len(o.gone.docs), o.gone.dropped)
	}
	if !o.gone.dropped && there != len(found) {
		t.Errorf("%s: %d documents, of which %d were inserted after the last drop", where, len(found), there)
	}
	o.gone = dropped{}
	for id := range found {
		o.gone.docs = append(o.gone.docs, id)
	}
}

// checkIndexes looks whether an index is in the list and on every partition, or nowhere. The server finishes that after it has begun to
// serve, so a difference must last.
func (o *operator) checkIndexes(t *testing.T, where string, db *mongo.Database) {
	t.Helper()
	for k, i := range o.indexes {
		var listed bool
		var difference string
		var err error
		for range 100 {
			if listed, difference, err = indexed(db, k); difference == "" && err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if difference != "" || err != nil {
			t.Errorf("%s: index %s of %s listed: %v; %s %v", where, k.name, k.collection, listed, difference, err)
		}
		if listed != i.there && listed != i.after {
			t.Errorf("%s: index %s of %s listed: %v, want %v or %v", where, k.name, k.collection, listed, i.there, i.after)
		}
		i.there, i.after = listed, listed
	}
}

// indexed reports whether an index is in a collection's list, and names a partition on which it is otherwise.
func indexed(db *mongo.Database, k indexKey) (listed bool, difference string, err error) {
	if listed, err = hasIndex(db.Collection(k.collection), k.name); err != nil || k.collection == "plain" {
		return listed, "", err
	}
	list, err := partitions(db, k.collection)
	for _, p := range list {
		if p.Backend != "a" {
			continue
		}
		database, collection, _ := strings.Cut(p.Name, ".")
		on, err := hasIndex(db.Client().Database(database).Collection(collection), k.name)
		if err != nil {
			return listed, "", err
		}
		if on != listed {
			difference = fmt.Sprintf("on partition %s: %v", p.Name, on)
		}
	}
	return listed, difference, err
}

func hasIndex(c *mongo.Collection, name string) (bool, error) {
	specs, err := c.Indexes().ListSpecifications(context.Background())
	return slices.ContainsFunc(specs, func(s mongo.IndexSpecification) bool { return s.Name == name }), err
}

// physical compares what is there with what is listed. Retention may be at work, so a difference must last.
func physical(t *testing.T, where string, client *mongo.Client) {
	t.Helper()
	var difference string
	var err error
	for range 20 {
		if difference, err = unlisted(client); difference == "" && err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s: %s %v", where, difference, err)
}

// unlisted names a collection that is there and not listed, or the other way round, on the backend of the databases.
func unlisted(client *mongo.Client) (string, error) {
	expected := map[string]bool{"crash.plain": true}
	for _, name := range []string{"minutes", "hashed", "both", "own", "kept", "turned", "gone"} {
		list, err := partitions(client.Database("crash"), name)
		if err != nil {
			return "", err
		}
		expected["crash."+name] = true
		for _, p := range list {
			if p.State != "active" && p.State != "hidden" {
				return p.Name + " is " + p.State, nil
			}
			if p.Backend == "a" {
				expected[p.Name] = false
			}
		}
	}
	databases := bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}, {Key: "showPartitions", Value: true}}
	var answer struct{ Databases []struct{ Name string } }
	if err := client.Database("admin").RunCommand(context.Background(), databases).Decode(&answer); err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for _, d := range answer.Databases {
		if d.Name == "oxbow" {
			continue
		}
		cursor, err := client.Database(d.Name).RunCommandCursor(context.Background(), bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}, {Key: "showPartitions", Value: true}})
		if err != nil {
			return "", err
		}
		var list []struct{ Name string }
		if err := cursor.All(context.Background(), &list); err != nil {
			return "", err
		}
		for _, c := range list {
			name := d.Name + "." + c.Name
			if _, ok := expected[name]; !ok {
				return name + " is there and is no partition", nil
			}
			seen[name] = true
		}
	}
	for name, optional := range expected {
		if !optional && !seen[name] {
			return "partition " + name + " is not there", nil
		}
	}
	return "", nil
}
