package badinput

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// badDocuments are documents that a layout has no place for.
var badDocuments = []struct {
	name, collection string
	fields           bson.D
	code             int
}{
	{"no time field", "bydate", bson.D{{Key: "h", Value: 1}}, 61},
	{"a string as time", "bydate", bson.D{{Key: "at", Value: "2024-05-01"}}, 2},
	{"null as time", "bydate", bson.D{{Key: "at", Value: nil}}, 2},
	{"an array as time", "bydate", bson.D{{Key: "at", Value: bson.A{at(1)}}}, 2},
	{"a number where dates are meant", "bydate", bson.D{{Key: "at", Value: int64(1714564800)}}, 2},
	{"a date before 1970", "bydate", bson.D{{Key: "at", Value: time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)}}, 2},
	{"a date after 9999", "bydate", bson.D{{Key: "at", Value: bson.DateTime(253402300800000)}}, 2},
	{"no seconds", "byseconds", bson.D{}, 61},
	{"seconds before 1970", "byseconds", bson.D{{Key: "at", Value: int64(-1)}}, 2},
	{"seconds after 9999", "byseconds", bson.D{{Key: "at", Value: int64(253402300800)}}, 2},
	{"milliseconds where seconds are meant", "byseconds", bson.D{{Key: "at", Value: int64(1714564800000)}}, 2},
	{"half a second", "byseconds", bson.D{{Key: "at", Value: 1714564800.5}}, 2},
	{"a date where seconds are meant", "byseconds", bson.D{{Key: "at", Value: at(1)}}, 2},
	{"an array in the hash field", "byhash", bson.D{{Key: "h", Value: bson.A{1}}}, 14},
	{"both, without the time", "byboth", bson.D{{Key: "h", Value: 1}}, 61},
	{"both, with an array in the hash field", "byboth", bson.D{{Key: "at", Value: at(1)}, {Key: "h", Value: bson.A{}}}, 14},
}

// A document without a place is a write error with its index; its neighbours are stored as the write's order has it.
func TestDocumentWithoutPlace(t *testing.T) {
	db := serve(t).Database("d")
	for _, c := range badDocuments {
		for _, ordered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ordered %v", c.name, ordered), func(t *testing.T) {
				collection := db.Collection(c.collection)
				if err := collection.Drop(t.Context()); err != nil {
					t.Fatal(err)
				}
				good := bson.D{{Key: "at", Value: at(1)}, {Key: "h", Value: 1}}
				if c.collection == "byseconds" {
					good[0].Value = at(1).Unix()
				}
				docs := []any{withID(1, good), withID(2, c.fields), withID(3, good)}
				_, err := collection.InsertMany(t.Context(), docs, options.InsertMany().SetOrdered(ordered))
				var failed mongo.BulkWriteException
				if !errors.As(err, &failed) || len(failed.WriteErrors) != 1 || failed.WriteErrors[0].Index != 1 || failed.WriteErrors[0].Code != c.code {
					t.Errorf("the error is %v", err)
				}
				want := []int32{1, 3}
				if ordered {
					want = []int32{1}
				}
				if got := ids(t, collection); !slices.Equal(got, want) {
					t.Errorf("the _ids are %v, not %v", got, want)
				}
			})
		}
	}
}

func withID(id int, fields bson.D) bson.D { return append(bson.D{{Key: "_id", Value: id}}, fields...) }

// An update that would move a document to another partition is refused as a change of a shard key is; the document is as it was.
func TestUpdateThatWouldMove(t *testing.T) {
	db := serve(t).Database("d")
	for _, c := range []struct {
		name, collection string
		update           any
		code             int // 66 ImmutableField, 61 ShardKeyNotFound
	}{
		{"a date of another day", "bydate", bson.M{"$set": bson.M{"at": at(9)}}, 66},
		{"no date any more", "bydate", bson.M{"$unset": bson.M{"at": 1}}, 61},
		{"a date by a pipeline", "bydate", bson.A{bson.M{"$set": bson.M{"at": "$other"}}}, 66},
		{"a date by $rename", "bydate", bson.M{"$rename": bson.M{"other": "at"}}, 66},
		{"a date by $currentDate", "bydate", bson.M{"$currentDate": bson.M{"at": true}}, 66},
		{"other seconds", "byseconds", bson.M{"$inc": bson.M{"at": 86400}}, 66},
		{"another hash", "byhash", bson.M{"$set": bson.M{"h": 2}}, 66},
		{"a hash by $inc", "byhash", bson.M{"$inc": bson.M{"h": 1}}, 66},
		{"another hash of both", "byboth", bson.M{"$set": bson.M{"h": 2}}, 66},
	} {
		t.Run(c.name, func(t *testing.T) {
			collection := db.Collection(c.collection)
			if err := collection.Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
			doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "at", Value: bson.NewDateTimeFromTime(at(1))}, {Key: "h", Value: int32(1)}, {Key: "other", Value: "x"}}
			if c.collection == "byseconds" {
				doc[1].Value = at(1).Unix()
			}
			stored(t, collection, doc)
			one := bson.M{"_id": 1}
			_, err := collection.UpdateOne(t.Context(), one, c.update)
			if codeOf(err) != c.code {
				t.Errorf("updateOne: %v", err)
			}
			if _, err := collection.UpdateMany(t.Context(), one, c.update); codeOf(err) != c.code {
				t.Errorf("updateMany: %v", err)
			}
			if err := collection.FindOneAndUpdate(t.Context(), one, c.update).Err(); codeOf(err) != c.code {
				t.Errorf("findAndModify: %v", err)
			}
			var got bson.D
			if err := collection.FindOne(t.Context(), one).Decode(&got); err != nil || fmt.Sprint(got) != fmt.Sprint(doc) {
				t.Errorf("the document is %v (%v), not %v", got, err, doc)
			}
		})
	}
}

// An insert of more than 100,000 documents is refused whole.
func TestTooManyDocuments(t *testing.T) {
	db := serve(t).Database("d")
	for _, name := range []string{"plain", "bydate", "byhash"} {
		docs := make(bson.A, 100_001)
		for i := range docs {
			docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "at", Value: at(1)}}
		}
		insert := bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: docs}}
		err := db.RunCommand(t.Context(), insert).Err()
		if codeOf(err) != 16 || !strings.Contains(err.Error(), "100000") {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := db.Collection(name).CountDocuments(t.Context(), bson.D{}); n != 0 || err != nil {
			t.Errorf("%s: %d documents were stored, %v", name, n, err)
		}
	}
}

// A duplicate _id is error 11000; the document that was there stays as it was.
func TestDuplicateID(t *testing.T) {
	db := serve(t).Database("d")
	for _, name := range []string{"plain", "bydate", "byhash", "byboth"} {
		c := db.Collection(name)
		first := bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: at(1)}, {Key: "h", Value: 1}, {Key: "v", Value: "first"}}
		stored(t, c, first)
		second := append(slices.Clone(first[:3]), bson.E{Key: "v", Value: "second"})
		_, err := c.InsertOne(t.Context(), second)
		if !mongo.IsDuplicateKeyError(err) || !strings.Contains(err.Error(), "d."+name+" index: _id_ dup key: { _id: 1 }") {
			t.Errorf("%s: %v", name, err)
		}
		var got bson.M
		if err := c.FindOne(t.Context(), bson.M{"_id": 1}).Decode(&got); err != nil || got["v"] != "first" {
			t.Errorf("%s holds %v, %v", name, got, err)
		}
	}
}
