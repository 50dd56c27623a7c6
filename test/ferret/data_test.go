package ferret

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow"
	"oxbow/internal/backend"
	"oxbow/test/inprocess"
)

// servers are what the gateway keeps its partitions, and its catalog, on.
var servers = map[string]func(t testing.TB) string{
	"ferretdb": Serve,
	"oxbow":    serveOxbow,
}

// serveOxbow starts a second Oxbow, on the embedded engine, and returns its connection string.
func serveOxbow(t testing.TB) string {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{Config: fmt.Appendf(nil, "backends: {local: {embedded: %s}}", t.TempDir()), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("close: %v", err)
		}
	})
	return g.URI()
}

// TestDataPaths: earthquakes by the days of a zone, and a fortnight of flights by day, by airport and by both, give their known figures on partitions that lie on a
// server, the catalog with them.
func TestDataPaths(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			g := &client{t: t, gateway: inprocess.Open(t, configuration(serve(t)))}
			g.earthquakes()
			for _, c := range []string{"plain", "day", "origin", "both"} {
				t.Run(c, func(t *testing.T) { (&client{t: t, gateway: g.gateway}).flights(c) })
			}
		})
	}
}

func configuration(uri string) string {
	return `backends: {s: {uri: "` + uri + `"}}
catalog: gateway
collections:
  air.day: {time: {field: date, every: day}}
  air.origin: {hash: {field: origin, count: 4}}
  air.both: {time: {field: date, every: week}, hash: {field: origin, count: 2}}
  earth.quakes: {time: {field: time, unit: ms, every: day, zone: Asia/Shanghai}}
`
}

// client sends commands to a gateway.
type client struct {
	t       *testing.T
	gateway *inprocess.Gateway
}

func (c *client) run(database string, command bson.D) bson.M {
	c.t.Helper()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: database}))
	if err != nil {
		c.t.Fatal(err)
	}
	reply, err := c.gateway.Run(c.t.Context(), &backend.Request{Body: body})
	if err != nil {
		c.t.Fatal(err)
	}
	var m bson.M
	if err := bson.Unmarshal(reply, &m); err != nil {
		c.t.Fatal(err)
	}
	if m["ok"] != 1.0 || m["writeErrors"] != nil {
		c.t.Fatalf("%v: %.1000v", command[0], m)
	}
	return m
}

// load inserts the documents of a file that keep keeps, by the thousand.
func (c *client) load(database, collection, file string, keep func(bson.D) bool) {
	c.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	var docs bson.A
	insert := func() {
		if len(docs) > 0 {
			c.run(database, bson.D{{Key: "insert", Value: collection}, {Key: "documents", Value: docs}, {Key: "ordered", Value: false}})
		}
		docs = nil
	}
	for in := bufio.NewScanner(f); in.Scan(); {
		var doc bson.D
		if err := bson.UnmarshalExtJSON(in.Bytes(), false, &doc); err != nil {
			c.t.Fatal(err)
		}
		if keep(doc) {
			docs = append(docs, doc)
		}
		if len(docs) == 1000 {
			insert()
		}
	}
	insert()
}

// earthquakes counts each day of a zone: facts of earthquakes.jsonl, counted outside Oxbow.
func (c *client) earthquakes() {
	c.load("earth", "quakes", "../data/earthquakes.jsonl", func(bson.D) bool { return true })
	var days []int64
	for _, p := range documents(c.run("earth", bson.D{{Key: "listPartitions", Value: "quakes"}})) {
		filter := bson.D{{Key: "time", Value: bson.D{{Key: "$gte", Value: int64(p["start"].(bson.DateTime))}, {Key: "$lt", Value: int64(p["end"].(bson.DateTime))}}}}
		n := c.run("earth", bson.D{{Key: "count", Value: "quakes"}, {Key: "query", Value: filter}})["n"]
		if count := toInt(n); count > 0 {
			days = append(days, count)
		}
	}
	if want := []int64{130, 218, 255, 231, 299, 265, 238, 71}; !slices.Equal(days, want) {
		c.t.Errorf("earthquakes a day: %v", days)
	}
}

// flights asks of a fortnight of flights.jsonl what is known of it.
func (c *client) flights(collection string) {
	from, to := time.Date(2001, 1, 14, 0, 0, 0, 0, time.UTC), time.Date(2001, 1, 28, 0, 0, 0, 0, time.UTC)
	c.run("air", bson.D{{Key: "createIndexes", Value: collection}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "origin", Value: 1}}}, {Key: "name", Value: "origin_1"}}}}})
	c.load("air", collection, "../data/flights.jsonl", func(doc bson.D) bool {
		for _, e := range doc {
			if at, ok := e.Value.(bson.DateTime); ok && e.Key == "date" {
				return !at.Time().Before(from) && at.Time().Before(to)
			}
		}
		return false
	})
	day := func(n int) bson.DateTime {
		return bson.NewDateTimeFromTime(time.Date(2001, 1, n, 0, 0, 0, 0, time.UTC))
	}
	between := func(a, b int) bson.D {
		return bson.D{{Key: "date", Value: bson.D{{Key: "$gte", Value: day(a)}, {Key: "$lt", Value: day(b)}}}}
	}
	if n := c.run("air", bson.D{{Key: "count", Value: collection}, {Key: "query", Value: between(15, 16)}})["n"]; toInt(n) != 212 {
		c.t.Errorf("flights of 15 January: %v", n)
	}
	week := c.run("air", bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: between(15, 22)}, {Key: "batchSize", Value: 2000}})
	if n := len(documents(week)); n != 1525 {
		c.t.Errorf("flights of the week: %d", n)
	}
	busiest := documents(c.run("air", bson.D{{Key: "aggregate", Value: collection}, {Key: "cursor", Value: bson.D{}}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$match", Value: between(15, 22)}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$origin"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "n", Value: -1}}}}, bson.D{{Key: "$limit", Value: 3}},
	}}}))
	for i, want := range []string{"ORD 76", "ATL 71", "DFW 66"} {
		if i >= len(busiest) || fmt.Sprint(busiest[i]["_id"], " ", toInt(busiest[i]["n"])) != want {
			c.t.Errorf("the busiest airports: %v", busiest)
			break
		}
	}
	longest := documents(c.run("air", bson.D{{Key: "find", Value: collection}, {Key: "sort", Value: bson.D{{Key: "delay", Value: -1}, {Key: "_id", Value: 1}}}, {Key: "limit", Value: 50}}))
	if !slices.IsSortedFunc(longest, func(a, b bson.M) int { return int(toInt(b["delay"]) - toInt(a["delay"])) }) || len(longest) != 50 {
		c.t.Errorf("the longest delays are not in order: %v", longest)
	}
	first := longest[0]["_id"]
	changed := c.run("air", bson.D{{Key: "update", Value: collection}, {Key: "updates", Value: bson.A{
		bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: first}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "late", Value: true}}}}}},
	}}})
	if toInt(changed["n"]) != 1 || toInt(changed["nModified"]) != 1 {
		c.t.Errorf("an update by _id: %v", changed)
	}
	removed := c.run("air", bson.D{{Key: "delete", Value: collection}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: between(15, 16)}, {Key: "limit", Value: 0}}}}})
	if toInt(removed["n"]) != 212 {
		c.t.Errorf("removed: %v", removed)
	}
	origins := c.run("air", bson.D{{Key: "distinct", Value: collection}, {Key: "key", Value: "late"}})["values"]
	if fmt.Sprint(origins) != "[true]" {
		c.t.Errorf("distinct values: %v", origins)
	}
}

// documents is the first batch of a reply.
func documents(reply bson.M) []bson.M {
	var out []bson.M
	cursor, _ := reply["cursor"].(bson.D)
	for _, e := range cursor {
		if e.Key != "firstBatch" {
			continue
		}
		for _, d := range e.Value.(bson.A) {
			m := bson.M{}
			for _, f := range d.(bson.D) {
				m[f.Key] = f.Value
			}
			out = append(out, m)
		}
	}
	return out
}

func toInt(v any) int64 {
	switch n := v.(type) {
	case int32:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return -1
}
