package equivalence

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"oxbow/test/inprocess"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// layout is one way to keep the collections c and d. Its database bears its name.
type layout struct {
	name       string
	time, hash bool
	as         string // database: a database a partition
	over       string
}

// layouts are all ways, the plain one first: what it answers is what all must answer.
var layouts = []layout{
	{name: "plain"},
	{name: "bytime", time: true},
	{name: "byhash", hash: true},
	{name: "byboth", time: true, hash: true},
	{name: "bytime_two", time: true, over: "[a, b]"},
	{name: "byhash_two", hash: true, over: "[a, b]"},
	{name: "byboth_two", time: true, hash: true, over: "[a, b]"},
	{name: "bydatabase", time: true, as: "database"},
	{name: "byhash_remote", hash: true, over: "[a, r]"},
	{name: "byboth_remote", time: true, hash: true, over: "[r, b]"},
}

// configuration is the YAML of all layouts, over two embedded backends and one by its connection string.
func configuration(remote string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "backends: {a: {embedded: a}, b: {embedded: b}, r: {uri: %q}}\ndatabases: {\"*\": a}\ncollections:\n", remote)
	for _, l := range layouts[1:] {
		for _, collection := range []string{"c", "d"} {
			fmt.Fprintf(&b, "  %s.%s:\n", l.name, collection)
			if l.time {
				fmt.Fprintf(&b, "    time: {field: t, every: day, as: %s}\n", cmp.Or(l.as, "collection"))
			}
			if l.hash {
				b.WriteString("    hash: {field: h, count: 3}\n")
			}
			if l.over != "" {
				fmt.Fprintf(&b, "    over: %s\n", l.over)
			}
		}
	}
	return b.String()
}

// system is a gateway and the layouts on it.
type system struct{ gateway *inprocess.Gateway }

// day is a time of the layouts' field: the days lie in the past, so that none is beyond what a layout makes ahead.
func day(n int, hour int) bson.DateTime {
	return bson.NewDateTimeFromTime(time.Date(2024, 2, 28+n, hour, 0, 0, 0, time.UTC))
}

// placed gives a document of this _id the fields that the layouts place it by. They are functions of the _id: documents of one _id would
// otherwise be two in different partitions, where a plain collection has one (docs/differences.md).
func placed(id int, rest ...bson.E) bson.D {
	d := append(bson.D{{Key: "_id", Value: int32(id)}}, keys(id)...)
	return append(d, rest...)
}

func keys(id int) bson.D {
	d := bson.D{{Key: "t", Value: day(id%4, id%2*11)}}
	switch id % 5 {
	case 0:
		d = append(d, bson.E{Key: "h", Value: int32(id % 2)})
	case 1:
		d = append(d, bson.E{Key: "h", Value: "x"})
	case 2:
		d = append(d, bson.E{Key: "h", Value: nil})
	case 3:
		d = append(d, bson.E{Key: "h", Value: 2.5})
	}
	return d
}
