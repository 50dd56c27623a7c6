package crash

import (
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document is a writer's document. Every change adds 1 to n and 2 to m and sets last, so that half a change shows.
type document struct {
	ID   string    `bson:"_id"`
	W    string    `bson:"w"`
	H    int32     `bson:"h"`
	At   time.Time `bson:"at"`
	N    int32     `bson:"n"`
	M    int32     `bson:"m"`
	Last string    `bson:"last"`
	Tags []int32   `bson:"tags"`
	Pad  string    `bson:"pad"`
}

// state is a document as its writer knows it, or its absence.
type state struct {
	there bool
	doc   document
}

// is reports whether a found document is that of a state.
func (s state) is(found document, there bool) bool {
	if !s.there || !there {
		return s.there == there
	}
	return s.doc.ID == found.ID && s.doc.W == found.W && s.doc.H == found.H && s.doc.At.Equal(found.At) && s.doc.N == found.N && found.M == 2*found.N &&
		s.doc.Last == found.Last && len(s.doc.Tags) == len(found.Tags) && s.doc.Pad == found.Pad
}

// changed is a document after one change.
func (d document) changed(last string) document {
	d.N, d.M, d.Last = d.N+1, d.M+2, last
	return d
}

// change is the update that makes it.
func change(last string) bson.D {
	return bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}, {Key: "m", Value: int32(2)}}}, {Key: "$set", Value: bson.D{{Key: "last", Value: last}}}}
}

// counters are documents that all writers of a collection add to.
type counters struct {
	base time.Time
	mu   sync.Mutex
	done [counterDocs]int // acknowledged
	sent [counterDocs]int // acknowledged or cut off
}

const counterDocs = 4

func newCounters(base time.Time) *counters { return &counters{base: base} }

func (c *counters) count(i int, acknowledged bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[i]++
	if acknowledged {
		c.done[i]++
	}
}

// check compares with what was found, which from now on is known.
func (c *counters) check(t *testing.T, where string, i int, found int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found < c.done[i] || found > c.sent[i] {
		t.Errorf("%s: counter %d is %d: %d were acknowledged, %d sent", where, i, found, c.done[i], c.sent[i])
	}
	c.done[i], c.sent[i] = found, found
}
