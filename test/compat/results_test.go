package compat

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// figures are what a client reads of the collections that all share.
type figures struct {
	Count, Estimated, Day, Week int64
	Explained                   []string // the partitions that the week's find concerns
	Busiest                     [][2]any // origin and number of flights
	Longest                     []int64  // _ids
	Quakes                      []int64  // a day
}

// own is what a client gets from the commands on its own collection, in the order in which it sends them.
type own struct {
	Inserted, Found, Sum int64
	Index                string
	Indexes              []string
	ByID                 [2]int64 // matched, modified
	Many, Replaced       int64
	After                [2]any // _id, top
	Removed, Upserted    int64
	Bulk                 [3]int64 // inserted, modified, deleted
	Duplicate            [2]any   // the error's class, its code
	BulkDuplicate        [3]any   // class, code, inserted
	Delayed, Estimated   int64
	Origins              int64
	Total                [2]int64 // documents, sum of delays
	Session              int64
	Transaction          any // the code of its refusal
	Unknown              any // the code of an unknown operator's refusal
	Collections          []string
	Database             bool
	Left, Gone           int64
}

// line is what a script prints of one database.
type line struct {
	Figures *figures
	Own     *own
	Left    *int64
}

// flightsOfJanuary15 and the rest are facts of flights.jsonl and earthquakes.jsonl, counted outside Oxbow.
const (
	flightsStored      = 20000
	flightsOfJanuary15 = 212
	flightsOfTheWeek   = 1525
	flightsLeft        = 13063
	days               = 90
	ranges             = 7 // that the week's find concerns
)

var (
	busiest = [][2]any{{"ORD", 76.0}, {"ATL", 71.0}, {"DFW", 66.0}}
	longest = []int64{12158, 9186, 8756}
	quakes  = []int64{130, 218, 255, 231, 299, 265, 238, 71}
)

// checkFigures compares a client's figures with the one table.
func checkFigures(t *testing.T, l layout, got *figures) {
	t.Helper()
	want := figures{
		Count: flightsStored, Estimated: flightsStored, Day: flightsOfJanuary15, Week: flightsOfTheWeek,
		Explained: got.Explained, Busiest: busiest, Longest: longest, Quakes: quakes,
	}
	same(t, want, *got)
	checkExplained(t, l, got.Explained)
}

// checkExplained checks which partitions an explained find of the week concerns: none where there is no layout, 7 days, 16 slots.
func checkExplained(t *testing.T, l layout, partitions []string) {
	t.Helper()
	perDay := map[string]bool{}
	for _, p := range partitions {
		day := p
		if i := strings.LastIndex(p, "_"); l.time && l.hash && i > 0 {
			day = p[:i]
		}
		perDay[day] = true
	}
	want := map[[2]bool][2]int{
		{false, false}: {0, 0},
		{true, false}:  {ranges, ranges},
		{false, true}:  {hashCount, hashCount},
		{true, true}:   {ranges, ranges * hashCount},
	}[[2]bool{l.time, l.hash}]
	if len(perDay) != want[0] || len(partitions) != want[1] {
		t.Errorf("explain shows %d partitions of %d days: %v", len(partitions), len(perDay), partitions)
	}
}

// flight is a document of flights.jsonl, as far as the expectations need it.
type flight struct {
	ID     int64  `bson:"_id"`
	Origin string `bson:"origin"`
	Delay  int64  `bson:"delay"`
}

// ownStored is how many flights a client puts into its own collection.
const ownStored = 300

// expectOwn computes by hand what the commands on a client's own collection must answer.
func expectOwn(t *testing.T, c client, collections []string) own {
	t.Helper()
	w := own{
		Inserted: ownStored, Found: ownStored, Sum: ownStored * (ownStored + 1) / 2,
		Index: "delay_1", Indexes: []string{"_id_", "delay_1"}, ByID: [2]int64{1, 1}, Replaced: 1,
		After: [2]any{6.0, true}, Removed: ownStored, Upserted: 9001, Bulk: [3]int64{1, 1, 1},
		Duplicate: [2]any{c.duplicate, 11000.0}, BulkDuplicate: [3]any{c.bulkDuplicate, 11000.0, 1.0},
		Estimated: ownStored + 3 - 2, Session: 9004, Transaction: 263.0, Unknown: 2.0,
		Collections: collections, Database: true, Left: 1,
	}
	origins := map[string]bool{"ORD": true} // of the three that are added
	w.Total = [2]int64{w.Estimated, 1 + 2 + 3}
	for _, f := range firstFlights(t) {
		if f.Origin == "ORD" {
			w.Many++
		}
		switch f.ID {
		case 5:
			f.Delay += 1000
		case 6:
			f.Delay = 2000
		case 8, ownStored:
			continue
		}
		origins[f.Origin] = true
		w.Total[1] += f.Delay
		if f.Delay > 60 {
			w.Delayed++
		}
	}
	w.Origins = int64(len(origins))
	return w
}

func firstFlights(t *testing.T) []flight {
	t.Helper()
	var all []flight
	for _, raw := range firstLines(t) {
		var one flight
		if err := bson.UnmarshalExtJSON(raw, false, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// firstLines are the lines of the flights that a client puts into its own collection.
func firstLines(t *testing.T) [][]byte {
	t.Helper()
	data, err := os.ReadFile(flightsFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitN(data, []byte("\n"), ownStored+1)
	return lines[:ownStored]
}

// same compares two results field by field.
func same[T any](t *testing.T, want, got T) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		if !reflect.DeepEqual(w.Field(i).Interface(), g.Field(i).Interface()) {
			t.Errorf("%s is %v, not %v", w.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
}

// collectionsOf are the names that listCollections gives while a client's own collection is there: no partition is among them.
func collectionsOf(own string) []string {
	names := []string{"flights", "quakes", own}
	slices.Sort(names)
	return names
}
