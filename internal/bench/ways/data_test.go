package ways

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// TestData checks that documents are numbered by their time, that the first half is what has to go, and that none lies near the cutoff.
func TestData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(10, 5000).Draw(t, "documents")
		now := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "now"), 0)
		d := NewData(Options{Documents: n, Size: 200}, now)
		if keep := d.End.Sub(d.Cutoff); keep < 24*time.Hour || keep >= 48*time.Hour || d.Cutoff.Hour() != 0 {
			t.Fatalf("the cutoff is %v before now", keep)
		}
		seen := make(map[bson.ObjectID]bool, n)
		for i := range n {
			at, id := d.time(i), d.id(i)
			switch {
			case i > 0 && at.Before(d.time(i-1)):
				t.Fatalf("document %d is older than the one before", i)
			case (i < d.Old()) != at.Before(d.Cutoff):
				t.Fatalf("document %d of %d is of %v, the cutoff %v", i, n, at, d.Cutoff)
			case i >= d.Old() && at.Sub(d.Cutoff) < gap, at.Before(d.Start()), at.After(d.End):
				t.Fatalf("document %d is of %v", i, at)
			case id.Timestamp().Unix() != at.Unix():
				t.Fatalf("document %d of %v has an _id of %v", i, at, id.Timestamp())
			case seen[id]:
				t.Fatalf("document %d has the _id of another", i)
			}
			seen[id] = true
		}
	})
}

func TestDocument(t *testing.T) {
	d := NewData(Options{Documents: 100, Size: 200}, time.Now())
	doc := d.document(rand.New(rand.NewPCG(1, 1)), 7)
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(doc) != 200 || !doc.Lookup(TimeField).Time().Equal(d.time(7)) || doc.Lookup("_id").ObjectID() != d.id(7) {
		t.Errorf("%d bytes: %s", len(doc), doc)
	}
}

// TestPick checks that updates touch nothing that has to go, and old and new documents as asked.
func TestPick(t *testing.T) {
	o := Options{Documents: 1000, Size: 200, Inserts: 100, OldUpdate: 20, Idle: time.Second, Limit: time.Second}.withDefaults()
	d := NewData(o, time.Now())
	f := &foreground{options: o, data: d, fresh: newFresh(o)}
	random := rand.New(rand.NewPCG(1, 2))
	for _, picked := range f.pick(random, 0) {
		if picked.time.Before(d.Cutoff) {
			t.Errorf("%v has to go", picked)
		}
	}
	f.fresh.Add([]document{{bson.NewObjectID(), time.Now()}})
	old := map[int64]int{}
	for n := range int64(1000) {
		if picked := f.pick(random, n); len(picked) > 1 {
			old[n%2]++
		}
	}
	if old[0] != 100 || old[1] != 100 {
		t.Errorf("of 500 updates by _id and 500 with the time, %d and %d are of old documents, want 100 each", old[0], old[1])
	}
}

func TestPlace(t *testing.T) {
	at := time.Date(2017, 6, 5, 23, 0, 0, 0, time.UTC)
	if p := (&Place{Collection: "log"}); p.Name(at) != "log" {
		t.Error(p.Name(at))
	}
	if p := (&Place{Collection: "log", Split: Daily}); p.Name(at) != "log170605" {
		t.Error(p.Name(at))
	}
}
