package command

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAbandoned: which commands end with their clients, where those that change documents do and where they don't.
func TestAbandoned(t *testing.T) {
	unacknowledged, err := bson.Marshal(bson.D{{Key: "w", Value: 0}})
	if err != nil {
		t.Fatal(err)
	}
	majority, err := bson.Marshal(bson.D{{Key: "w", Value: "majority"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name         string
		writes       bool
		concern      []byte
		ends, killed bool // by default, and with abandoned: kill
	}{
		{"find", false, nil, true, true},
		{"update", true, nil, false, true},
		{"insert", true, majority, false, true},
		{"delete", true, unacknowledged, false, false},
		{"createIndexes", true, nil, false, false},
	} {
		for _, kill := range []bool{false, true} {
			ops, c, ended := newOperations(kill), &Conn{}, false
			req := &Request{Name: test.name, Conn: c, Arguments: Arguments{WriteConcern: test.concern}}
			began := time.Now()
			ops.begin(req, &Entry{Writes: test.writes}, false, began, func(error) { ended = true })
			want := test.ends
			if kill {
				want = test.killed
			}
			if got := ops.Abandonable(c, began.Add(time.Second)); got != want {
				t.Errorf("%s, kill %v: worth looking after: %v", test.name, kill, got)
			}
			if ops.Abandon(c); ended != want {
				t.Errorf("%s, kill %v: ended: %v", test.name, kill, ended)
			}
		}
	}
}
