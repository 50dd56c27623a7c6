package config

import (
	"fmt"
	"time"

	"oxbow/internal/route"
)

// Cost is what a collection's layout comes to once retention has caught up.
type Cost struct {
	Bounded    bool // false: a time layout without keep grows for ever, and the figures are those of the partitions ahead
	Ranges     int  // time ranges at once: keep, the one being filled, those held and those ahead; 1 without a time layout
	Partitions int  // ranges times slots
	PerBackend int  // the most partitions on one backend
	Files      int  // files on that backend where it is MongoDB's WiredTiger: one a collection and one an index
}

// The numbers of collections on one deployment that MongoDB advises against and that Oxbow refuses
// (https://www.mongodb.com/docs/atlas/schema-suggestions/reduce-collections/ names 10,000 for a replica set).
const (
	manyCollections    = 10_000
	tooManyCollections = 100_000
)

// Cost computes what a layout comes to with a number of indexes besides _id.
func (c *Collection) Cost(indexes int) Cost {
	cost := Cost{Bounded: true, Ranges: 1}
	if t := c.Layout.Time; t != nil {
		cost.Bounded = t.Keep > 0
		cost.Ranges = cells(t.Keep, t.Every) + cells(c.Hold, t.Every) + 1 + t.Ahead
	}
	slots := 1
	if h := c.Layout.Hash; h != nil {
		slots = h.Count
	}
	cost.Partitions = cost.Ranges * slots
	cost.PerBackend = (cost.Partitions + len(c.Over) - 1) / len(c.Over)
	cost.Files = cost.PerBackend * (2 + indexes)
	return cost
}

// cells returns how many cells a duration covers, the last one whole.
func cells(d time.Duration, e route.Every) int {
	shortest := map[route.Every]time.Duration{
		route.Minute: time.Minute, route.Hour: time.Hour, route.Day: 24 * time.Hour, route.Week: 7 * 24 * time.Hour, route.Month: 28 * 24 * time.Hour,
	}[e]
	return int((d + shortest - 1) / shortest)
}

// Advice is a finding of Check.
type Advice struct {
	Collection string
	Refused    bool
	Message    string
}

// Check computes what every layout comes to and says where that is more than MongoDB or a file system carries well, or at all. indexes are those
// besides _id, by namespace, as far as they are known.
func (c *Config) Check(indexes map[string]int) []Advice {
	var advice []Advice
	for i := range c.Collections {
		col := &c.Collections[i]
		ns := col.Namespace()
		cost := col.Cost(indexes[ns])
		say := func(refused bool, format string, args ...any) {
			advice = append(advice, Advice{Collection: ns, Refused: refused, Message: fmt.Sprintf(format, args...)})
		}
		switch {
		case cost.PerBackend > tooManyCollections:
			say(true, "comes to %d partitions on one backend (%d files on WiredTiger); %d is the most", cost.PerBackend, cost.Files, tooManyCollections)
		case cost.PerBackend > manyCollections:
			say(false, "comes to %d partitions on one backend (%d files on WiredTiger); MongoDB advises against more than %d", cost.PerBackend, cost.Files, manyCollections)
		}
		if !cost.Bounded {
			say(false, "has no keep: its partitions grow without end")
		}
		if t := col.Layout.Time; t != nil && t.Keep > 0 && cells(t.Keep, t.Every) < 2 {
			say(false, "keeps less than two partitions' time: up to twice the documents that keep asks for are stored")
		}
	}
	return advice
}
