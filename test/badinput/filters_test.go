package badinput

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// everyType has a value of each BSON type.
func everyType() []any {
	decimal, err := bson.ParseDecimal128("1714564800")
	if err != nil {
		panic(err)
	}
	return []any{
		1.5, math.NaN(), math.Inf(1), math.Inf(-1), "x", bson.D{{Key: "a", Value: 1}}, bson.D{}, bson.A{}, bson.A{at(1)}, bson.A{nil},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Undefined{}, bson.NewObjectIDFromTimestamp(at(1)), true, at(1), nil,
		bson.Regex{Pattern: "^x"}, bson.DBPointer{DB: "d.c", Pointer: bson.NewObjectID()}, bson.JavaScript("f"), bson.Symbol("x"),
		bson.CodeWithScope{Code: "f", Scope: bson.D{}}, int32(1), bson.Timestamp{T: 1714564800, I: 1}, int64(1714564800), decimal,
		bson.MinKey{}, bson.MaxKey{},
	}
}

// A filter on the layout's field of every type gives what it gives on a plain collection: documents, or the same error.
func TestFilterOfEveryType(t *testing.T) {
	db := serve(t).Database("d")
	for name, docs := range map[string][]any{
		"bydate":    {bson.M{"_id": 1, "at": at(1)}, bson.M{"_id": 2, "at": at(2)}, bson.M{"_id": 3, "at": at(3)}},
		"byseconds": {bson.M{"_id": 1, "at": at(1).Unix()}, bson.M{"_id": 2, "at": float64(at(2).Unix())}, bson.M{"_id": 3, "at": at(3).Unix()}},
		"byhash":    {bson.M{"_id": 1, "h": 1}, bson.M{"_id": 2, "h": "x"}, bson.M{"_id": 3}, bson.M{"_id": 4, "h": nil}, bson.M{"_id": 5, "h": at(1)}},
	} {
		plain := db.Collection("plain_" + name)
		stored(t, plain, docs...)
		stored(t, db.Collection(name), docs...)
		field := "at"
		if name == "byhash" {
			field = "h"
		}
		for _, v := range everyType() {
			for _, f := range filtersOf(field, v) {
				want, got := outcome(t, plain, f), outcome(t, db.Collection(name), f)
				if want != got {
					t.Errorf("%s, filter %v: %s, but on a plain collection %s", name, f, got, want)
				}
			}
		}
	}
}

// filtersOf are filters with a value in each kind of condition.
func filtersOf(field string, v any) []bson.D {
	filters := []bson.D{{{Key: field, Value: v}}}
	for _, op := range []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$not"} {
		filters = append(filters, bson.D{{Key: field, Value: bson.D{{Key: op, Value: v}}}})
	}
	for _, op := range []string{"$in", "$nin", "$all"} {
		filters = append(filters, bson.D{{Key: field, Value: bson.D{{Key: op, Value: bson.A{v}}}}})
	}
	equal := bson.D{{Key: "$eq", Value: bson.A{"$" + field, bson.D{{Key: "$literal", Value: v}}}}}
	return append(filters, bson.D{{Key: "$expr", Value: equal}})
}

// outcome is the _ids that a filter finds, or its error's code.
func outcome(t *testing.T, c *mongo.Collection, filter bson.D) string {
	cursor, err := c.Find(t.Context(), filter)
	var docs []bson.M
	if err == nil {
		err = cursor.All(context.Background(), &docs)
	}
	if err != nil {
		return fmt.Sprintf("error %d", codeOf(err))
	}
	var found []string
	for _, d := range docs {
		found = append(found, fmt.Sprint(d["_id"]))
	}
	slices.Sort(found)
	return "documents " + strings.Join(found, " ")
}

// A filter that is none fails every command that it stands in, and no document is touched: least of all is the condition left out.
func TestWrongFilter(t *testing.T) {
	db := serve(t).Database("d")
	for _, name := range []string{"plain", "bydate", "byhash", "byboth"} {
		c := db.Collection(name)
		stored(t, c, bson.M{"_id": 1, "at": at(1), "h": 1}, bson.M{"_id": 2, "at": at(2), "h": 2})
		for _, f := range []struct {
			name   string
			filter bson.M
			code   int
		}{
			{"unknown operator", bson.M{"_id": bson.M{"$nope": 1}}, 2},
			{"unknown operator at the top", bson.M{"$nope": 1}, 2},
			{"unknown operator on a layout's field", bson.M{"at": bson.M{"$nope": at(1)}}, 2},
			{"unknown operator of an expression", bson.M{"$expr": bson.M{"$nope": 1}}, 168},
			{"a regex that doesn't compile", bson.M{"v": bson.Regex{Pattern: "("}}, 51091},
			{"a regex with an unknown option", bson.M{"v": bson.Regex{Pattern: "x", Options: "q"}}, 51108},
		} {
			wrong := map[string]error{
				"find":          c.FindOne(t.Context(), f.filter).Err(),
				"findAndModify": c.FindOneAndDelete(t.Context(), f.filter).Err(),
			}
			_, wrong["count"] = c.CountDocuments(t.Context(), f.filter)
			_, wrong["delete"] = c.DeleteMany(t.Context(), f.filter)
			_, wrong["update"] = c.UpdateMany(t.Context(), f.filter, bson.M{"$set": bson.M{"v": 1}})
			wrong["distinct"] = c.Distinct(t.Context(), "h", f.filter).Err()
			for command, err := range wrong {
				if codeOf(err) != f.code {
					t.Errorf("%s on %s with %s: %v, not error %d", command, name, f.name, err, f.code)
				}
			}
		}
		if got := ids(t, c); !slices.Equal(got, []int32{1, 2}) {
			t.Errorf("%s holds %v", name, got)
		}
		if n, err := c.CountDocuments(t.Context(), bson.M{"v": bson.M{"$exists": true}}); n != 0 || err != nil {
			t.Errorf("%d documents of %s were changed, %v", n, name, err)
		}
	}
}
