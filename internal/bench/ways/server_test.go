package ways

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func marshal(t *testing.T, v any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestLag(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	member := func(state int, behind time.Duration) bson.D {
		return bson.D{{Key: "state", Value: state}, {Key: "optimeDate", Value: now.Add(-behind)}}
	}
	arbiter := bson.D{{Key: "state", Value: 7}}
	for _, test := range []struct {
		name string
		of   bson.A
		want *float64
	}{
		{"two secondaries", bson.A{member(2, 3*time.Second), member(1, 0), member(2, 500*time.Millisecond), arbiter}, some(3.0)},
		{"ahead of the primary's news", bson.A{member(1, time.Second), member(2, 0)}, some(0.0)},
		{"no secondary", bson.A{member(1, 0), arbiter}, nil},
		{"no primary", bson.A{member(2, 0), arbiter}, nil},
	} {
		got := lagOf(marshal(t, bson.D{{Key: "members", Value: test.of}}))
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if lagOf(nil) != nil {
		t.Error("a server that refused has a lag")
	}
}

func TestOplog(t *testing.T) {
	stats := bson.D{{Key: "wiredTiger", Value: bson.D{{Key: "cursor", Value: bson.D{{Key: "insert key and value bytes", Value: int64(42)}}}}}}
	if got := oplogOf(marshal(t, stats)); got == nil || *got != 42 {
		t.Errorf("%v, want 42", got)
	}
	if oplogOf(nil) != nil || oplogOf(marshal(t, bson.D{{Key: "size", Value: 7}})) != nil {
		t.Error("a server that does not tell has an oplog")
	}
}
