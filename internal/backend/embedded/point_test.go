package embedded

import (
	"bytes"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/statement"
)

// pointElements are what the finds of TestPoint are put together from: what drivers send for findOne, and what is near to it.
var pointElements = []driver.E{
	{Key: "filter", Value: driver.D{{Key: "_id", Value: 7}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: driver.ObjectID{1}}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: driver.D{{Key: "$gt", Value: 7}}}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: driver.D{{Key: "a", Value: 7}}}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: driver.A{7}}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: nil}}},
	{Key: "filter", Value: driver.D{{Key: "_id", Value: 7}, {Key: "a", Value: 1}}},
	{Key: "filter", Value: driver.D{}},
	{Key: "filter", Value: "x"},
	{Key: "$db", Value: "db"},
	{Key: "$db", Value: "db"},
	{Key: "$db", Value: 1},
	{Key: "limit", Value: int64(1)},
	{Key: "limit", Value: int32(1)},
	{Key: "limit", Value: int32(0)},
	{Key: "limit", Value: int64(-1)},
	{Key: "limit", Value: 1.5},
	{Key: "limit", Value: "1"},
	{Key: "singleBatch", Value: true},
	{Key: "singleBatch", Value: false},
	{Key: "singleBatch", Value: "true"},
	{Key: "batchSize", Value: int32(1)},
	{Key: "batchSize", Value: int32(0)},
	{Key: "batchSize", Value: int64(-2)},
	{Key: "lsid", Value: driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}}}},
	{Key: "lsid", Value: 1},
	{Key: "$clusterTime", Value: driver.D{}},
	{Key: "projection", Value: driver.D{{Key: "a", Value: 1}}},
	{Key: "sort", Value: driver.D{{Key: "a", Value: 1}}},
	{Key: "skip", Value: int32(1)},
	{Key: "maxTimeMS", Value: int32(10)},
	{Key: "readConcern", Value: driver.D{{Key: "level", Value: "snapshot"}}},
	{Key: "hint", Value: "_id_"},
	{Key: "collation", Value: driver.D{{Key: "locale", Value: "de"}}},
	{Key: "unknown", Value: 1},
}

// TestPoint holds the short way to the long one: what it takes is a find of this _id that statement.ParseFind takes as well.
func TestPoint(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]any{"log", "log", "log", 1}).Draw(t, "name")
		body := driver.D{{Key: "find", Value: name}, pointElements[rapid.IntRange(0, 8).Draw(t, "filter")], {Key: "$db", Value: "db"}}
		body = append(body, rapid.SliceOfN(rapid.SampledFrom(pointElements[9:]), 0, 3).Draw(t, "fields")...)
		raw, err := driver.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := parsePoint(raw)
		if !ok {
			return
		}
		taken++
		f, err := statement.ParseFind(raw)
		if err != nil {
			t.Fatalf("%v is taken, and is %v", body, err)
		}
		id, sole := soleID(f)
		if !sole || !bytes.Equal(id.Data, p.id.Data) || id.Type != p.id.Type || f.Database != p.table.Database || f.Collection != p.table.Collection ||
			f.Projection != nil || f.MaxTimeMS != 0 || f.ReadConcern != nil {
			t.Fatalf("%v is taken for a find of %v in %v", body, p.id, p.table)
		}
	})
	if taken == 0 {
		t.Error("no find was taken")
	}
}

// TestPointOfDrivers takes what the Go driver, the Node driver and pymongo send for a findOne by _id.
func TestPointOfDrivers(t *testing.T) {
	session := driver.E{Key: "lsid", Value: driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}}}}
	for _, fields := range []driver.D{
		{{Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true}, session, {Key: "$db", Value: "db"}},
		{{Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}, {Key: "batchSize", Value: int32(1)}, session, {Key: "$db", Value: "db"}},
	} {
		raw, err := driver.Marshal(append(driver.D{{Key: "find", Value: "log"}, {Key: "filter", Value: driver.D{{Key: "_id", Value: "a"}}}}, fields...))
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := parsePoint(raw); !ok || p.id.Type != bson.TypeString {
			t.Errorf("%s is not taken", driver.Raw(raw))
		}
		for cut := range len(raw) {
			if _, ok := parsePoint(raw[:cut]); ok {
				t.Errorf("the first %d bytes of %d are taken", cut, len(raw))
			}
		}
	}
}
