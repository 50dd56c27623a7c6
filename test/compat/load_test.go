package compat

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/load"
)

const (
	flightsFile = "../data/flights.jsonl"
	quakesFile  = "../data/earthquakes.jsonl"
)

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Disconnect(context.Background()) })
	return c
}

// loadAll fills the collections that all clients read.
func loadAll(t *testing.T, c *mongo.Client) {
	t.Helper()
	for _, l := range layouts {
		db := c.Database(l.name)
		begun := time.Now()
		loadFile(t, db.Collection("flights"), flightsFile, flightsStored)
		loadFile(t, db.Collection("quakes"), quakesFile, 1707)
		t.Logf("%s loaded in %v", l.name, time.Since(begun).Round(time.Millisecond))
	}
}

func loadFile(t *testing.T, c *mongo.Collection, file string, want int64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := load.Run(t.Context(), c, load.NewJSONLines(f), load.Options{
		Batch: 2000, Workers: 2, Failed: func(line int, err error) { t.Errorf("%s:%d: %v", file, line, err) },
	})
	if err != nil || r.Stored != want {
		t.Fatalf("load %s: %d documents stored, %v", file, r.Stored, err)
	}
}

// february is the instant before which dropJanuary leaves no flight.
var february = time.Date(2001, 2, 1, 0, 0, 0, 0, time.UTC)

// dropJanuary drops the partitions of flights that end by February, or deletes their documents where there are no partitions of time.
func dropJanuary(t *testing.T, client *mongo.Client) {
	t.Helper()
	for _, l := range layouts {
		c := client.Database(l.name).Collection("flights")
		if !l.time {
			if _, err := c.DeleteMany(t.Context(), bson.M{"date": bson.M{"$lt": february}}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, p := range listPartitions(t, c) {
			if p.End.After(february) {
				continue
			}
			err := c.Database().RunCommand(t.Context(), bson.D{{Key: "dropPartition", Value: c.Name()}, {Key: "partition", Value: p.Name}}).Err()
			if err != nil {
				t.Fatalf("drop %s: %v", p.Name, err)
			}
		}
	}
}

// partition is a row of listPartitions.
type partition struct {
	Name    string    `bson:"name"`
	Backend string    `bson:"backend"`
	Start   time.Time `bson:"start"`
	End     time.Time `bson:"end"`
	Slot    *int32    `bson:"slot"`
	Count   int64     `bson:"count"`
}

func listPartitions(t *testing.T, c *mongo.Collection) []partition {
	t.Helper()
	cursor, err := c.Database().RunCommandCursor(t.Context(), bson.D{{Key: "listPartitions", Value: c.Name()}, {Key: "stats", Value: true}})
	if err != nil {
		t.Fatal(err)
	}
	var all []partition
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkPartitions compares what lies behind each layout with the facts: 90 days of flights, 8 of earthquakes, 16 slots, and the documents in them.
func checkPartitions(t *testing.T, client *mongo.Client) {
	january15 := time.Date(2001, 1, 15, 0, 0, 0, 0, time.UTC)
	for _, l := range layouts {
		if !l.time && !l.hash {
			continue
		}
		db := client.Database(l.name)
		flights := summarize(listPartitions(t, db.Collection("flights")))
		if l.time && len(flights.days) != days {
			t.Errorf("%s: flights of %d days, not %d", l.name, len(flights.days), days)
		}
		if l.time && flights.days[january15] != flightsOfJanuary15 {
			t.Errorf("%s: %d flights of 2001-01-15, not %d", l.name, flights.days[january15], flightsOfJanuary15)
		}
		if l.hash && flights.slots != hashCount {
			t.Errorf("%s: %d slots, not %d", l.name, flights.slots, hashCount)
		}
		if l.twoOf != (flights.backends == 2) {
			t.Errorf("%s: spread over %d backends", l.name, flights.backends)
		}
		if l.time {
			if got := summarize(listPartitions(t, db.Collection("quakes"))).counts(); !slices.Equal(got, quakes) {
				t.Errorf("%s: earthquakes a day %v, not %v", l.name, got, quakes)
			}
		}
	}
}

// summary is what a collection's partitions hold together.
type summary struct {
	days            map[time.Time]int64 // documents by a range's start
	slots, backends int
}

func summarize(all []partition) summary {
	s := summary{days: map[time.Time]int64{}}
	slots, backends := map[int32]bool{}, map[string]bool{}
	for _, p := range all {
		s.days[p.Start.UTC()] += p.Count
		backends[p.Backend] = true
		if p.Slot != nil {
			slots[*p.Slot] = true
		}
	}
	s.slots, s.backends = len(slots), len(backends)
	return s
}

// counts returns the documents of each range, in the order of time.
func (s summary) counts() []int64 {
	var starts []time.Time
	for start := range s.days {
		starts = append(starts, start)
	}
	slices.SortFunc(starts, time.Time.Compare)
	var counts []int64
	for _, start := range starts {
		counts = append(counts, s.days[start])
	}
	return counts
}
