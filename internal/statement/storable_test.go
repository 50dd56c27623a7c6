package statement

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// A document holds one _id: of two, one would be lost or not be found.
func TestSecondIDIsRefused(t *testing.T) {
	for _, c := range []struct {
		doc driver.D
		ok  bool
	}{
		{driver.D{{Key: "_id", Value: 1}, {Key: "_id", Value: 2}}, false},
		{driver.D{{Key: "a", Value: 1}, {Key: "_id", Value: 1}, {Key: "b", Value: 1}, {Key: "_id", Value: 1}}, false},
		{driver.D{{Key: "a", Value: 1}, {Key: "_id", Value: 1}, {Key: "a", Value: 1}}, true},
	} {
		raw, err := driver.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Storable(raw, Fill{}); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.doc, err)
		}
	}
}
