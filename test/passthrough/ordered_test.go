package passthrough

import (
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/test/inprocess"
)

// TestOrderedByPartition: with the key, an ordered insert of documents that go to a server's partitions in turn is one command a partition instead of one a
// document, stops in each at the first error there, and names every error; sent again, it does nothing anew.
func TestOrderedByPartition(t *testing.T) {
	const documents = 40
	for _, c := range []struct {
		key      string
		commands int
		stored   int32
		errors   []int32
	}{
		{"", 12, 11, []int32{11}}, // up to the first error
		{", ordered: partition", 4, 29, []int32{11, 30}},
	} {
		k := newKeeper(t, 100)
		text := fmt.Sprintf("backends: {one: {uri: %q}}\ncollections:\n  laid.c: {hash: {field: u, count: 4}%s}\n", k.uri, c.key)
		g := inprocess.Open(t, text)
		docs := bson.A{}
		for i := range documents {
			id := i
			switch i {
			case 11: // seven of its partition follow
				id = 7
			case 30: // two of its partition follow
				id = 2
			}
			docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "u", Value: i}})
		}
		cmd := in("laid", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}}, session(1), bson.E{Key: "txnNumber", Value: int64(1)})
		for try := range 2 {
			got := reply(t, g, cmd)
			var errors []int32
			list, _ := got["writeErrors"].(bson.A)
			for _, e := range list {
				index, _ := get(e.(bson.D), "index").(int32)
				errors = append(errors, index)
			}
			if got["n"] != c.stored || !slices.Equal(errors, c.errors) {
				t.Errorf("%q, try %d: %v", c.key, try, got)
			}
			if sent := k.take(); len(sent) != c.commands {
				t.Errorf("%q, try %d: %d commands were sent", c.key, try, len(sent))
			}
		}
	}
}
